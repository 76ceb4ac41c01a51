// Unit tests of the classes that carry the promises: ring, table, buffers, verdicts, regions. One file a class;
// run_sanitizers.sh runs them under ASan, UBSan and TSan, tests/native/test_units.py as they are.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "doctest/doctest.h"
