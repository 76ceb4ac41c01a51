#include "sim/counters/metric_eval.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "sim/machine/faults.h"

namespace sim {
namespace {

struct Suffix {
  const char* text;
  Sub sub;
};
constexpr std::array kCounterSuffixes{
    Suffix{"", Sub::kNone},
    Suffix{".peak_sustained", Sub::kPeak},
    Suffix{".peak_sustained_active", Sub::kPeakActive},
    Suffix{".peak_sustained_active.per_second", Sub::kPeakActivePerSecond},
    Suffix{".peak_sustained_elapsed", Sub::kPeakElapsed},
    Suffix{".peak_sustained_elapsed.per_second", Sub::kPeakElapsedPerSecond},
    Suffix{".per_cycle_active", Sub::kPerCycleActive},
    Suffix{".per_cycle_elapsed", Sub::kPerCycleElapsed},
    Suffix{".per_second", Sub::kPerSecond},
    Suffix{".pct_of_peak_sustained_active", Sub::kPctActive},
    Suffix{".pct_of_peak_sustained_elapsed", Sub::kPctElapsed}};
constexpr std::array kRatioSuffixes{Suffix{".max_rate", Sub::kMaxRate}, Suffix{".pct", Sub::kPct},
                                    Suffix{".ratio", Sub::kRatio}};
constexpr std::array kRollups{std::pair{".avg", Rollup::kAvg}, std::pair{".max", Rollup::kMax},
                              std::pair{".min", Rollup::kMin}, std::pair{".sum", Rollup::kSum}};

struct Full {
  std::string text;
  Rollup rollup;
  Sub sub;
};

std::vector<Full> all_of(MetricType type) {
  std::vector<Full> out;
  if (type == MetricType::RATIO) {
    for (const Suffix& s : kRatioSuffixes) out.push_back({s.text, Rollup::kNone, s.sub});
    return out;
  }
  for (const auto& [text, rollup] : kRollups)
    for (const Suffix& s : kCounterSuffixes) {
      const bool pct = s.sub == Sub::kPctActive || s.sub == Sub::kPctElapsed;
      if (type == MetricType::COUNTER || pct) out.push_back({std::string(text) + s.text, rollup, s.sub});
    }
  return out;
}

const std::vector<Full>& full_names(MetricType type) {
  static const std::array<std::vector<Full>, 3> all{all_of(MetricType::COUNTER), all_of(MetricType::RATIO),
                                                    all_of(MetricType::THROUGHPUT)};
  return all[static_cast<size_t>(type)];
}

class Evaluation {
 public:
  Evaluation(const Chip& chip, const std::function<double(RawId)>& raw) : x_chip(chip), x_raw(raw) {}

  double counter(RawId id, Rollup rollup, Sub sub) const {
    const Raw& r = raws()[id];
    const double n = instances(r.unit, x_chip);
    const double share = rollup == Rollup::kSum ? 1 : n;  // min and max: the work is spread evenly
    const double peak = peak_per_cycle(r.unit, r.dimension, r.name, x_chip) * n / share;
    const double active = x_raw(active_cycles(r.unit)) / n, elapsed = x_raw(elapsed_cycles(r.unit)) / n;
    const double seconds = x_raw(time_duration()) / 1e9;
    switch (sub) {
      case Sub::kPeak:
        return peak;
      case Sub::kPeakActive:
        return peak * active;
      case Sub::kPeakActivePerSecond:
        return peak * active / seconds;
      case Sub::kPeakElapsed:
        return peak * elapsed;
      case Sub::kPeakElapsedPerSecond:
        return peak * elapsed / seconds;
      default:
        break;
    }
    const double value = x_raw(id) / share;
    switch (sub) {
      case Sub::kPerCycleActive:
        return value / active;
      case Sub::kPerCycleElapsed:
        return value / elapsed;
      case Sub::kPerSecond:
        return value / seconds;
      case Sub::kPctActive:
        return 100 * value / (peak * active);
      case Sub::kPctElapsed:
        return 100 * value / (peak * elapsed);
      default:
        return value;
    }
  }

  double ratio(const Metric& m, Sub sub) const {
    if (sub == Sub::kMaxRate) return m.max_rate;
    const double value = x_raw(m.numerator) / x_raw(m.denominator);
    return sub == Sub::kPct ? 100 * value / m.max_rate : value;
  }

  double throughput(const Metric& m, Rollup rollup, Sub sub) const {
    double most = 0;
    for (const RawId id : m.constituents) {
      const double v = counter(id, rollup, sub);
      if (std::isnan(v)) return v;
      most = std::max(most, v);
    }
    return most;
  }

 private:
  const Chip& x_chip;
  const std::function<double(RawId)>& x_raw;
};

}  // namespace

bool chip_has(const Metric& m, uint32_t cupti_chip, Profiler profiler) {
  if (((profiler == Profiler::kSampling ? m.sampling_chips : m.range_chips) >> cupti_chip & 1) == 0)
    return false;
  const auto lacking = fault(CUPTISIM_FAULT_MISSING_METRIC);
  return !lacking || !missing_metric(m.name);
}

std::optional<MetricRef> find_metric(std::string_view name, uint32_t cupti_chip, Profiler profiler) {
  // The longest base name that the name begins with: base names may have dots themselves.
  for (size_t end = name.size(); end != std::string_view::npos && end > 0; end = name.rfind('.', end - 1)) {
    const Metric* m = metric_named(name.substr(0, end));
    if (!m) continue;
    if (!chip_has(*m, cupti_chip, profiler)) return std::nullopt;
    if (end == name.size()) return MetricRef{m};
    for (const Full& f : full_names(m->type))
      if (f.text == name.substr(end)) return MetricRef{m, f.rollup, f.sub, true};
    return std::nullopt;
  }
  return std::nullopt;
}

const std::vector<std::string>& submetrics(MetricType type) {
  static const auto all = [] {
    std::array<std::vector<std::string>, 3> out;
    for (size_t t = 0; t < out.size(); ++t)
      for (const Full& f : full_names(static_cast<MetricType>(t))) out[t].push_back(f.text);
    return out;
  }();
  return all[static_cast<size_t>(type)];
}

std::string dimension_of(const MetricRef& ref) {
  const Metric& m = *ref.metric;
  const std::string cycle = m.unit == Unit::kDram                          ? "dram_cycle"
                            : m.unit == Unit::kLts                         ? "fbp_cycle"
                            : m.unit == Unit::kSys || m.unit == Unit::kGpu ? "sys_cycle"
                                                                           : "gpc_cycle";
  switch (ref.sub) {
    case Sub::kPctActive:
    case Sub::kPctElapsed:
    case Sub::kPct:
      return "percent";
    case Sub::kPeak:
    case Sub::kPerCycleActive:
    case Sub::kPerCycleElapsed:
      return m.dimension + "/" + cycle;
    case Sub::kPerSecond:
    case Sub::kPeakActivePerSecond:
    case Sub::kPeakElapsedPerSecond:
      return m.dimension + "/second";
    default:
      return m.dimension;
  }
}

std::vector<RawId> needed_raws(const MetricRef& ref) {
  const Metric& m = *ref.metric;
  std::vector<RawId> out = m.constituents;
  for (const RawId id : {m.raw, m.numerator, m.denominator})
    if (id != kNoRaw) out.push_back(id);
  const size_t own = out.size();
  for (size_t i = 0; i < own; ++i) {
    const Unit unit = raws()[out[i]].unit;
    out.push_back(active_cycles(unit));
    out.push_back(elapsed_cycles(unit));
  }
  out.push_back(time_duration());
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::optional<std::vector<RawId>> raws_of_metrics(const char* const* names, size_t count, uint32_t cupti_chip,
                                                  Profiler profiler) {
  std::vector<RawId> all;
  for (size_t i = 0; i < count; ++i) {
    const auto ref = names[i] ? find_metric(names[i], cupti_chip, profiler) : std::nullopt;
    if (!ref || !ref->complete) return std::nullopt;
    const auto needed = needed_raws(*ref);
    all.insert(all.end(), needed.begin(), needed.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

double evaluate(const MetricRef& ref, const Chip& chip, const std::function<double(RawId)>& raw) {
  const Evaluation e(chip, raw);
  switch (ref.metric->type) {
    case MetricType::RATIO:
      return e.ratio(*ref.metric, ref.sub);
    case MetricType::THROUGHPUT:
      return e.throughput(*ref.metric, ref.rollup, ref.sub);
    default:
      return e.counter(ref.metric->raw, ref.rollup, ref.sub);
  }
}

}  // namespace sim
