// Unit tests of the classes that carry the promises: ring, table, buffers, verdicts, open regions, the
// tracker. One file a class. CI runs them as they are (run_units.sh), and through run_sanitizers.sh under
// ASan, UBSan and TSan.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "doctest/doctest.h"
