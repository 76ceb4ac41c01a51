// A piece of GPU work, whatever asked for it: a call of its own, or a graph that was launched.
#pragma once
#include <cstdint>

#include "sim/machine/work.h"

namespace sim {

enum class Recording : bool { kNo, kYes };  // whether the work has an activity record

// Places it on its stream, counts it, and writes its record. On the launching thread, which waits only where
// a range profiler makes it wait. Returns a CUresult; `at`: when it runs.
uint32_t run_work(Work work, Recording recording, Placed& at);

}  // namespace sim
