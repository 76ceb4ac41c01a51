// What stands in the way of counting on this machine, said when a session starts instead of after the first
// launch: a permission that is missing, another profiler, a device that cannot be profiled.
#pragma once
#include "counters/strategy/counter_strategy.h"
#include "cupti/api.h"

namespace cuptiprof {

// Enables the profiler once, and disables it, where the process has a context already; asks what the device
// supports where it has none. A profiler that is busy is tried again for a third of a second. Throws Error.
void preflight(const Api& api, const CounterOptions& options);

// Contexts of the process as far as they are known, the calling thread's first.
std::vector<CUcontext> known_contexts(const Api& api, std::vector<CUcontext> (*used)());

}  // namespace cuptiprof
