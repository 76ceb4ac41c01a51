// The availability image: which counters a device gives, in the stand-in's own format.
#pragma once
#include <cupti_result.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/counters/counter_table.h"

namespace sim {

// As cuptiProfilerGetCounterAvailability does it: the size, and the image where there is room for one.
// `links`: counters of the whole device are in it (PCIe, NVLink).
CUptiResult write_availability(uint32_t device, bool links, size_t& size, uint8_t* image);

struct Availability {
  std::string chip;
  bool links = false;
  std::vector<std::string> lacking;  // base metrics
};
// None: not an image.
std::optional<Availability> read_availability(const uint8_t* image);

// Counters that no device of the machine gives, whatever was planned.
std::vector<RawId> unavailable_raws(uint32_t cupti_chip, bool sampling);

}  // namespace sim
