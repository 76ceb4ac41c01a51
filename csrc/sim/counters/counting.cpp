#include "sim/counters/counting.h"

#include "sim/counters/device_sampler.h"
#include "sim/counters/profiler_controls.h"
#include "sim/counters/profiler_objects.h"
#include "sim/counters/range_session.h"

namespace sim {

std::atomic<uint32_t> g_counting{0}, g_configured_samplers{0}, g_started_samplers{0}, g_range_profilers{0};

void drop_profilers() {
  range_sessions().clear();
  samplers().clear();
  drop_controls();
  g_configured_samplers = g_started_samplers = g_range_profilers = 0;
}

std::optional<CountedRun> run_counted(const Work& work, Stream& stream, uint64_t duration) {
  const auto session = range_sessions().of(&work.context);
  return session ? session->run_kernel(work, stream, duration) : std::nullopt;
}

void count_kernel(const Work& work) {
  if (const auto session = range_sessions().of(&work.context)) {
    const auto duration = static_cast<double>(work.at.end - work.at.start);
    session->add_to_ranges(work, KernelCounters(work.op, duration, Machine::get().chip()));
  }
  count_in_samples(work);
}

}  // namespace sim
