// The availability image: which counters a device gives, in the stand-in's own format. Any thread.
#pragma once
#include <cupti_result.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/counters/counter_table.h"

namespace sim {

enum class Links : bool { kLeftOut, kIncluded };  // counters of the whole device: PCIe, NVLink

// As cuptiProfilerGetCounterAvailability does it: the size, and the image where there is room for one.
CUptiResult write_availability(uint32_t device, Links links, size_t& size, uint8_t* image);

struct Availability {
  std::string chip;
  Links links = Links::kLeftOut;
  std::vector<std::string> lacking;  // base metrics
};
// None: not an image.
std::optional<Availability> read_availability(const uint8_t* image);

// Counters that no device of the machine gives, whatever was planned.
std::vector<RawId> unavailable_raws(uint32_t cupti_chip, Profiler profiler);

}  // namespace sim
