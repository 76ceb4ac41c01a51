// What a plan is made of.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace cuptiprof {

// Metrics that one configuration of the hardware collects together.
struct PassGroup {
  std::vector<std::string> metrics;  // sorted
  std::vector<uint8_t> image;        // configuration image
  uint32_t passes = 0;
};

}  // namespace cuptiprof
