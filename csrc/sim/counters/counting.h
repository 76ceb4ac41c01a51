// Counters being collected: what launches ask, on the thread that launches, and what a reset needs.
#pragma once
#include <atomic>
#include <optional>

#include "sim/machine/work.h"

namespace sim {

// Started range profilers and samplers; samplers that could be started, whose counters run already.
extern std::atomic<uint32_t> g_counting, g_configured_samplers, g_started_samplers;
inline bool counters_started() { return g_counting.load(std::memory_order_relaxed) != 0; }
// The only question an ordinary launch asks.
inline bool counting() {
  return counters_started() || g_configured_samplers.load(std::memory_order_relaxed) != 0;
}
// Enabled range profilers: a range counts what it finds running, so that is remembered.
extern std::atomic<uint32_t> g_range_profilers;
inline bool ranges_may_begin() { return g_range_profilers.load(std::memory_order_relaxed) != 0; }
// Objects that were enabled and not started die with the machine.
void drop_profilers();

struct CountedRun {
  Placed at;        // of the last execution
  uint32_t result;  // CUresult
};
// Runs a kernel as the range profiler of its context wants it: alone, and under kernel replay once for each
// pass. None: it runs as ever. `work.at` holds the GPU times if the op gives them.
std::optional<CountedRun> run_counted(const Work& work, Stream& stream, uint64_t duration);
// A kernel that ran as ever, after it was placed: its part of user ranges and of the samples of its device.
void count_kernel(const Work& work);

}  // namespace sim
