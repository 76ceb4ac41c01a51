#include "sim/counters/counter_table.h"

#include <algorithm>
#include <unordered_map>

#include "sim/counters/counter_formulas.h"

namespace sim {
namespace {

struct Entry {
  const char* name;
  MetricType type;
  const char* unit;
  const char* dimension;
  uint32_t range_chips, sampling_chips;
  const char* description;
};

using enum MetricType;
constexpr Entry kEntries[] = {
#define SIM_METRIC(name, type, unit, dimension, range, sampling, description) \
  {name, type, unit, dimension, range, sampling, description},
#include "sim/counters/counter_names.def"
#undef SIM_METRIC
};

class Table {
 public:
  Table() {
    for (const Entry& e : kEntries) add_metric(e);
    for (const auto& [unit, name] : kUnitNames) {
      add_raw(std::string(name) + "__cycles_active", unit, "cycle", kEverywhere, kEverywhere);
      add_raw(std::string(name) + "__cycles_elapsed", unit, "cycle", kEverywhere, kEverywhere);
    }
    for (Metric& m : metrics) add_formula(m);
    for (size_t i = 0; i < raws.size(); ++i) relate(raws, by_name, static_cast<RawId>(i));
    for (Metric& m : metrics)
      if (m.type == THROUGHPUT) m.constituents = constituents_of(m, raws);
    for (const auto& [unit, name] : kUnitNames) {
      active[static_cast<size_t>(unit)] = by_name.at(std::string(name) + "__cycles_active");
      elapsed[static_cast<size_t>(unit)] = by_name.at(std::string(name) + "__cycles_elapsed");
    }
    time = by_name.at("gpu__time_duration");
  }

  std::vector<Raw> raws;
  std::vector<Metric> metrics;
  std::unordered_map<std::string, RawId> by_name;
  std::unordered_map<std::string_view, const Metric*> by_base;
  RawId active[kUnits], elapsed[kUnits], time;

  void index() {
    for (const Metric& m : metrics) by_base.emplace(m.name, &m);
  }

 private:
  static constexpr uint32_t kEverywhere = (1u << kNumCuptiChips) - 1;
  static constexpr std::pair<Unit, const char*> kUnitNames[] = {
      {Unit::kSm, "sm"},     {Unit::kSmsp, "smsp"}, {Unit::kL1tex, "l1tex"}, {Unit::kLts, "lts"},
      {Unit::kDram, "dram"}, {Unit::kGpc, "gpc"},   {Unit::kTpc, "tpc"},     {Unit::kGpu, "gpu"},
      {Unit::kSys, "sys"},   {Unit::kLink, "pcie"}, {Unit::kOther, "other"}};

  RawId add_raw(const std::string& name, Unit unit, const std::string& dimension, uint32_t range,
                uint32_t sampling) {
    const auto [at, is_new] = by_name.try_emplace(name, static_cast<RawId>(raws.size()));
    if (is_new) {
      Raw r;
      r.name = name, r.unit = unit, r.dimension = dimension;
      r.range_chips = range, r.sampling_chips = sampling;
      raws.push_back(std::move(r));
    }
    return at->second;
  }

  void add_metric(const Entry& e) {
    Metric m;
    m.name = e.name, m.unit_name = e.unit, m.dimension = e.dimension, m.description = e.description;
    m.type = e.type, m.unit = unit_named(e.unit);
    m.range_chips = e.range_chips, m.sampling_chips = e.sampling_chips;
    if (e.type == COUNTER) m.raw = add_raw(m.name, m.unit, m.dimension, m.range_chips, m.sampling_chips);
    metrics.push_back(std::move(m));
  }

  void add_formula(Metric& m) {
    if (m.type != RATIO) return;
    const RatioFormula f = ratio_formula(m.name);
    m.max_rate = f.max_rate;
    m.numerator = add_raw(f.numerator, m.unit, f.numerator_dimension, m.range_chips, m.sampling_chips);
    m.denominator = add_raw(f.denominator, m.unit, f.denominator_dimension, m.range_chips, m.sampling_chips);
  }
};

const Table& table() {
  static const Table* t = [] {
    auto* made = new Table;  // never destroyed (Machine::get)
    made->index();
    return made;
  }();
  return *t;
}

}  // namespace

std::span<const Raw> raws() { return table().raws; }
std::span<const Metric> metrics() { return table().metrics; }

const Metric* metric_named(std::string_view base) {
  const auto at = table().by_base.find(base);
  return at == table().by_base.end() ? nullptr : at->second;
}

RawId raw_named(std::string_view name) {
  const auto at = table().by_name.find(std::string(name));
  return at == table().by_name.end() ? kNoRaw : at->second;
}

RawId active_cycles(Unit unit) { return table().active[static_cast<size_t>(unit)]; }
RawId elapsed_cycles(Unit unit) { return table().elapsed[static_cast<size_t>(unit)]; }
RawId time_duration() { return table().time; }

}  // namespace sim
