// Metrics the simulated chips have, and the raw counters behind them.
//
// A counter metric is one raw counter (a sum over the whole GPU). A ratio is one raw counter over another, a
// throughput the largest of several raw counters' share of their peak. What no metric names but a formula
// needs is a raw counter of its own (name and unit of the usual pattern). Made at the first question;
// constant from then on.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/counters/counter_units.h"

namespace sim {

enum class MetricType : uint8_t { COUNTER, RATIO, THROUGHPUT };  // as CUpti_MetricType
using RawId = uint16_t;
constexpr RawId kNoRaw = 0xffff;

struct Raw {
  std::string name;
  Unit unit;
  std::string dimension;
  uint32_t range_chips, sampling_chips;  // bits: kCuptiChips
  enum class Kind : uint8_t { kUsual, kElapsed, kActive, kTime } kind = Kind::kUsual;
  bool sass = false;       // counted by patched instructions: no hardware counter, and alone in its pass
  bool exclusive = false;  // of two groups of the same unit that cannot be counted together, the second
  bool free = false;       // always counted
  uint64_t hash = 0;       // of the name

  // How a kernel's value follows from others'; see counter_model.
  RawId alias = kNoRaw;    // the same quantity under another name
  RawId sectors = kNoRaw;  // bytes: 32 of these
  RawId parent = kNoRaw;   // a part of this
  RawId rest = kNoRaw;     // of `parent`, what is left beside this
  double scale = 1;        // of `parent`, at most
};

struct Metric {
  std::string name, unit_name, dimension, description;
  MetricType type;
  Unit unit;
  uint32_t range_chips, sampling_chips;
  RawId raw = kNoRaw;                              // counter
  RawId numerator = kNoRaw, denominator = kNoRaw;  // ratio
  double max_rate = 1;                             // ratio: what 100 % is
  std::vector<RawId> constituents;                 // throughput
};

std::span<const Raw> raws();
std::span<const Metric> metrics();
// nullptr, kNoRaw: there is none.
const Metric* metric_named(std::string_view base);
RawId raw_named(std::string_view name);
// The cycle counters that a unit's rates refer to, and the GPU's time.
RawId active_cycles(Unit unit);
RawId elapsed_cycles(Unit unit);
RawId time_duration();

}  // namespace sim
