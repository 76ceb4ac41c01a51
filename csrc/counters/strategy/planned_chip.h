// Which devices have the chip that the metrics were planned for: a machine may have several kinds.
#pragma once
#include <string>
#include <vector>

#include "cupti/api.h"

namespace cuptiprof {

class PlannedChip {
 public:
  PlannedChip(const Api& api, const std::string& chip);
  // Devices that could not be asked are taken for the planned one: CUPTI refuses what they cannot count.
  [[nodiscard]] bool is_of(uint32_t device) const noexcept {
    return device >= x_other.size() || !x_other[device];
  }

 private:
  std::vector<bool> x_other;  // by device
};

// The device of the calling thread's context, or of the first one in which work was launched; 0: no context.
uint32_t device_in_use(const Api& api, const std::vector<CUcontext>& contexts);

// What the availability image of a device holds.
struct DeviceCounters {
  std::vector<uint8_t>
      image;               // empty: it was not to be had, and everything that the chip has is planned with
  bool has_links = false;  // PCIe and NVLink too
};
// Of the first of these contexts; `device` for sampling, which needs none.
DeviceCounters device_counters(const Api& api, const std::vector<CUcontext>& contexts, bool sampling);

}  // namespace cuptiprof
