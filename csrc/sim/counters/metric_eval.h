// Full metric names (base, roll-up, sub-metric): which exist, what they need, what they come to. Any thread;
// nothing here changes but the fault that takes a metric away.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/counters/counter_table.h"

namespace sim {

enum class Rollup : uint8_t { kNone, kAvg, kMax, kMin, kSum };
enum class Sub : uint8_t {
  kNone,
  kPeak,
  kPeakActive,
  kPeakActivePerSecond,
  kPeakElapsed,
  kPeakElapsedPerSecond,
  kPerCycleActive,
  kPerCycleElapsed,
  kPerSecond,
  kPctActive,
  kPctElapsed,
  kRatio,
  kPct,
  kMaxRate
};

struct MetricRef {
  const Metric* metric;
  Rollup rollup = Rollup::kNone;
  Sub sub = Sub::kNone;
  bool complete = false;  // named with its roll-up, so that it has a value
};

// A metric by its base or full name. None: no such metric, or this chip lacks it.
std::optional<MetricRef> find_metric(std::string_view name, uint32_t cupti_chip, Profiler profiler);
bool chip_has(const Metric& metric, uint32_t cupti_chip, Profiler profiler);

// ".avg", ".avg.per_second", ...: what may follow a base name of this type. They live as long as the library.
const std::vector<std::string>& submetrics(MetricType type);

// CUPTI's word for what the value counts.
std::string dimension_of(const MetricRef& ref);

// Raw counters that the value needs, the free ones included; sorted.
std::vector<RawId> needed_raws(const MetricRef& ref);

// Of all these metrics by their full names; none if one of them is not known.
std::optional<std::vector<RawId>> raws_of_metrics(const char* const* names, size_t count, uint32_t cupti_chip,
                                                  Profiler profiler);

// `raw`: the sum of a raw counter. NaN where a raw counter is (a counter that was not collected is).
double evaluate(const MetricRef& ref, const Chip& chip, const std::function<double(RawId)>& raw);

}  // namespace sim
