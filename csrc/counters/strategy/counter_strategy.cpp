#include "counters/strategy/counter_strategy.h"

namespace cuptiprof {
namespace {

std::vector<uint32_t> sizes_of(const std::vector<PassGroup>& groups) {
  std::vector<uint32_t> sizes;
  for (const PassGroup& g : groups) sizes.push_back(static_cast<uint32_t>(g.metrics.size()));
  return sizes;
}

}  // namespace

CounterStrategy::CounterStrategy(std::shared_ptr<const Api> api, CounterOptions options)
    : x_api(std::move(api)),
      x_options(std::move(options)),
      x_rows(sizes_of(x_options.groups), x_options.row_bytes, x_options.keep_latest_rows),
      x_selector(x_api, x_options.selector),
      x_clocks(*x_api, x_options.clocks) {}

}  // namespace cuptiprof
