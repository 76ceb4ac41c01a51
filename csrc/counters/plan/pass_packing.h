// Metrics -> few groups that each fit one pass of the hardware.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "counters/plan/pass_group.h"

namespace cuptiprof {

// One configuration of these metrics; nullopt: they do not fit one pass together.
using FitOnePass = std::function<std::optional<PassGroup>(std::vector<std::string> metrics)>;

// `units`: the metrics by part of the chip, each of which fits alone. Parts are packed on their own first:
// metrics of one part compete for its counters, and different parts mostly do not; that takes fewer and
// cheaper tries than all at once, and found fewer groups. Not always the fewest possible. Throws Error
// (kMetric) when a metric does not fit alone.
std::vector<PassGroup> pack_one_pass(const std::vector<std::vector<std::string>>& units,
                                     const FitOnePass& fit);

}  // namespace cuptiprof
