// What kernel replay costs, and what it cannot do.
#pragma once
#include "sim/counters/counter_model.h"

namespace sim {

// How long a kernel that cannot finish holds its launch before the call fails.
constexpr uint64_t kHangNs = 2'000'000'000;

// Waits for a kernel on another GPU, which is not replayed with it.
bool communicates(const cuptisim_op& op);
// Memory that must be saved before a replay: what the kernel writes.
double kept_bytes(const KernelCounters& counters);
// Time of a copy within the device's memory.
uint64_t copy_time(uint64_t bytes, const Chip& chip);

}  // namespace sim
