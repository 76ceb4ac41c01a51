// Formulas that follow from a metric's name: what a ratio divides, what a throughput is the largest of, and
// how raw counters hang together (hits are part of lookups, bytes are 32 times sectors). Used once, to make
// the table.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/counters/counter_table.h"

namespace sim {

struct RatioFormula {
  std::string numerator, numerator_dimension;
  std::string denominator, denominator_dimension;
  double max_rate;
};
RatioFormula ratio_formula(const std::string& base);

std::vector<RawId> constituents_of(const Metric& throughput, const std::vector<Raw>& raws);

// Fills in what depends on the other raw counters' names.
void relate(std::vector<Raw>& raws, const std::unordered_map<std::string, RawId>& by_name, RawId id);

}  // namespace sim
