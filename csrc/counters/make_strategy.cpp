#include "counters/make_strategy.h"

#include "counters/preflight.h"
#include "counters/range/kernel_counters.h"
#include "counters/range/region_counters.h"
#include "counters/sample/pm_sampler.h"
#include "counters/strategy/profiler_setup.h"
#include "cupti/call.h"

namespace cuptiprof {
namespace {

std::unique_ptr<CounterStrategy> make(std::shared_ptr<const Api> api, CounterOptions options) {
  switch (options.strategy) {
    case Strategy::kReplay:
    case Strategy::kIterate:
      return std::make_unique<KernelCounters>(std::move(api), std::move(options));
    case Strategy::kRange:
      return std::make_unique<RegionCounters>(std::move(api), std::move(options));
    case Strategy::kSample:
      return std::make_unique<PmSampler>(std::move(api), std::move(options));
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<CounterStrategy> make_strategy(std::shared_ptr<const Api> api, CounterOptions options) {
  initialize_profiler(*api);
  preflight(*api, options);
  const auto contexts = known_contexts(*api, options.contexts);
  auto strategy = make(api, std::move(options));
  if (contexts.empty() || !strategy) return strategy;
  // Where there is no context yet they are held from the first launch that is counted.
  strategy->clocks().hold(contexts.front());
  if (strategy->options().clocks_are_wanted)
    check(*api, strategy->clocks().result(), "cuptiClockControlLock", "clock_control");
  return strategy;
}

}  // namespace cuptiprof
