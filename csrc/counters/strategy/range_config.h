// What the range profiler and the PM sampler are given of a plan.
#pragma once
#include <string>
#include <vector>

#include "counters/plan/planner.h"

namespace cuptiprof {

// A pass group as CUPTI wants it: names as C strings, the image.
struct RangeConfig {
  const PassGroup* group = nullptr;
  std::vector<const char*> names;
  explicit RangeConfig(const PassGroup& g) : group(&g) {
    for (const std::string& m : g.metrics) names.push_back(m.c_str());
  }
};

}  // namespace cuptiprof
