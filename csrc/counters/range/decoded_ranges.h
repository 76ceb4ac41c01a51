// What decoding leaves: an image of counters, and what was opened for each range in it.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "counters/strategy/counter_rows.h"
#include "counters/strategy/range_config.h"
#include "cupti/api.h"

namespace cuptiprof {

struct PendingRange {
  CounterRow row;
  uint32_t passes = 0;  // in which it was closed
  bool keep = true;     // neither a row nor counted yet
};

// Belongs to whoever measures, until it is handed to a RangeEvaluator: to that one until it is free again.
struct DecodedRanges {
  std::vector<uint8_t> image;         // CUPTI writes to it while it is configured and decoded
  std::vector<PendingRange> pending;  // in the order in which they were opened
  const RangeConfig* config = nullptr;
  size_t ranges = 0;       // in the image
  bool in_order = true;    // range i of the image is pending[i]; else its name is the index
  bool all_passes = true;  // were submitted
  uint32_t passes = 1;     // in which each must have been closed
  std::atomic<bool> handed_over{false};
};

// How many ranges an image holds.
size_t ranges_in(const Api& api, const std::vector<uint8_t>& image) noexcept;
// As pushed, nested ones joined by '/'; empty: cannot be told.
std::string name_of_range(const Api& api, const std::vector<uint8_t>& image, size_t index);

}  // namespace cuptiprof
