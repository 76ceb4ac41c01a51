#include "counters/strategy/planned_chip.h"

#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "counters/strategy/profiler_setup.h"

namespace cuptiprof {
namespace {

// CUDA 13.1: the guide wants no image for PCIe and NVLink before it.
constexpr int kFirstWithLinks = 130100;

// CUpti_Profiler_GetCounterAvailability_Params of newer headers (13.5): without the flag the image lacks the
// counters of the whole device.
struct ParamsWithLinks {
  CUpti_Profiler_GetCounterAvailability_Params old;
  uint8_t device_level;
};
constexpr size_t kOldSize = CUpti_Profiler_GetCounterAvailability_Params_STRUCT_SIZE;
constexpr size_t kSizeWithLinks = kOldSize + 1;
static_assert(offsetof(ParamsWithLinks, device_level) == kOldSize);

// Never with a null context: without a driver CUPTI takes it for one.
std::vector<uint8_t> of_context(const Api& api, CUcontext context, bool links) {
  ParamsWithLinks p{};
  p.old.structSize = links ? kSizeWithLinks : kOldSize;
  p.old.ctx = context;
  p.device_level = links;
  if (api.cuptiProfilerGetCounterAvailability(&p.old) != CUPTI_SUCCESS) return {};
  std::vector<uint8_t> image(p.old.counterAvailabilityImageSize);
  p.old.pCounterAvailabilityImage = image.data();
  if (image.empty() || api.cuptiProfilerGetCounterAvailability(&p.old) != CUPTI_SUCCESS) return {};
  return image;
}

std::vector<uint8_t> of_device(const Api& api, uint32_t device) {
  CUpti_PmSampling_GetCounterAvailability_Params p{};
  p.structSize = CUpti_PmSampling_GetCounterAvailability_Params_STRUCT_SIZE;
  p.deviceIndex = device;
  if (api.cuptiPmSamplingGetCounterAvailability(&p) != CUPTI_SUCCESS) return {};
  std::vector<uint8_t> image(p.counterAvailabilityImageSize);
  p.pCounterAvailabilityImage = image.data();
  if (image.empty() || api.cuptiPmSamplingGetCounterAvailability(&p) != CUPTI_SUCCESS) return {};
  return image;
}

}  // namespace

PlannedChip::PlannedChip(const Api& api, const std::string& chip) {
  int devices = 0;
  if (!api.cuDeviceGetCount || api.cuDeviceGetCount(&devices) != CUDA_SUCCESS) return;
  for (int i = 0; i < devices; ++i) try {
      x_other.push_back(chip_name(api, static_cast<size_t>(i)) != chip);
    } catch (const Error&) {
      x_other.push_back(false);
    }
}

uint32_t device_in_use(const Api& api, const std::vector<CUcontext>& contexts) {
  uint32_t device = 0;
  for (CUcontext context : contexts)
    if (api.cuptiGetDeviceId && api.cuptiGetDeviceId(context, &device) == CUPTI_SUCCESS) return device;
  return 0;
}

DeviceCounters device_counters(const Api& api, const std::vector<CUcontext>& contexts, bool sampling) {
  DeviceCounters out;
  if (contexts.empty() || (api.driver_version == 0 && !api.simulated)) return out;
  const bool links = api.version >= kFirstWithLinks;
  if (sampling) {
    if (api.cuptiPmSamplingGetCounterAvailability) out.image = of_device(api, device_in_use(api, contexts));
    out.has_links = links;
    return out;
  }
  if (!api.cuptiProfilerGetCounterAvailability) return out;
  if (links) out.image = of_context(api, contexts.front(), true);
  out.has_links = !out.image.empty();
  if (out.image.empty()) out.image = of_context(api, contexts.front(), false);
  return out;
}

}  // namespace cuptiprof
