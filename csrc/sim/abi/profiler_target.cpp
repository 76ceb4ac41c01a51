// What a profiler asks of the machine before it counts: is it allowed, which chip is it.
#include <cupti_activity.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>

#include "sim/abi/profiler_params.h"
#include "sim/counters/availability.h"
#include "sim/counters/counter_units.h"
#include "sim/counters/profiler_objects.h"
#include "sim/machine/current_context.h"

namespace sim {
namespace {

std::atomic<bool> g_initialized{false};

// With a flag for counters of the whole device (cupti_profiler_target.h of 13.5; which release was the first
// with it is not known).
constexpr int kFirstWithLinks = 130100;
constexpr size_t kAvailabilityWithLinks = CUpti_Profiler_GetCounterAvailability_Params_STRUCT_SIZE + 1;

}  // namespace

// Objects that launches look up too (profiler_objects.h).
Registry<const Context*, RangeSession>& range_sessions() {
  static auto* all = new Registry<const Context*, RangeSession>;  // never destroyed (Machine::get)
  return *all;
}

Registry<uint32_t, Sampler>& samplers() {
  static auto* all = new Registry<uint32_t, Sampler>;  // never destroyed (Machine::get)
  return *all;
}

const Chip& chip_of_device(uint32_t device) {
  const auto f = fault(CUPTISIM_FAULT_OTHER_CHIP);
  const Chip* other = f && f->a == device ? chip_named(f->name.c_str()) : nullptr;
  return other ? *other : Machine::get().chip();
}

bool profiler_initialized() { return g_initialized; }
void set_profiler_initialized(bool yes) { g_initialized = yes; }

}  // namespace sim

using namespace sim;

SIM_EXPORT CUptiResult CUPTIAPI cuptiProfilerInitialize(CUpti_Profiler_Initialize_Params* p) {
  SIM_PARAMS("cuptiProfilerInitialize", p, CUpti_Profiler_Initialize_Params_STRUCT_SIZE);
  set_profiler_initialized(true);
  return CUPTI_SUCCESS;
}

// Not reference-counted: the first call takes the profiler from every client (pytorch 188849). NVIDIA's
// crashes when it is called twice; an error is as clear a sign of the mistake.
SIM_EXPORT CUptiResult CUPTIAPI cuptiProfilerDeInitialize(CUpti_Profiler_DeInitialize_Params* p) {
  SIM_PARAMS("cuptiProfilerDeInitialize", p, CUpti_Profiler_DeInitialize_Params_STRUCT_SIZE);
  if (!profiler_initialized()) return CUPTI_ERROR_NOT_INITIALIZED;
  set_profiler_initialized(false);
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiProfilerDeviceSupported(CUpti_Profiler_DeviceSupported_Params* p) {
  SIM_PARAMS("cuptiProfilerDeviceSupported", p, CUpti_Profiler_DeviceSupported_Params_STRUCT_SIZE);
  if (p->cuDevice < 0 || static_cast<uint32_t>(p->cuDevice) >= Machine::get().devices())
    return CUPTI_ERROR_INVALID_DEVICE;
  constexpr auto yes = CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
  constexpr auto no = CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED;
  p->isSupported = p->architecture = p->sli = p->vGpu = p->confidentialCompute = p->cmp = p->wsl = yes;
  uint64_t reason = 0;
  if (const auto f = fault(CUPTISIM_FAULT_NO_COUNTERS)) reason = f->a;
  switch (reason) {
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
      p->vGpu = no;
      break;
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      p->vGpu = CUPTI_PROFILER_CONFIGURATION_DISABLED;
      break;
    case CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED:
      p->confidentialCompute = no;
      break;
    default:  // MIG has no field of its own: only the verdict says so
      break;
  }
  if (p->api == CUPTI_PROFILER_PM_SAMPLING && Machine::get().chip().major < 8) p->architecture = no;
  if (reason != 0 || p->architecture == no) p->isSupported = no;
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI
cuptiProfilerGetCounterAvailability(CUpti_Profiler_GetCounterAvailability_Params* p) {
  SIM_PARAMS("cuptiProfilerGetCounterAvailability", p,
             CUpti_Profiler_GetCounterAvailability_Params_STRUCT_SIZE);
  if (!profiler_initialized()) return CUPTI_ERROR_NOT_INITIALIZED;
  const bool has_flag = Machine::get().version() >= kFirstWithLinks;
  if (p->structSize >
      (has_flag ? kAvailabilityWithLinks : CUpti_Profiler_GetCounterAvailability_Params_STRUCT_SIZE))
    return CUPTI_ERROR_INVALID_PARAMETER;
  const Context* context = Machine::get().find_context(p->ctx ? p->ctx : current_context());
  if (!context) return CUPTI_ERROR_INVALID_CONTEXT;
  if (range_sessions().of(context)) return CUPTI_ERROR_INVALID_OPERATION;
  const bool links = p->structSize == kAvailabilityWithLinks &&
                     reinterpret_cast<const uint8_t*>(p)[kAvailabilityWithLinks - 1] != 0;
  return write_availability(context->device, links ? Links::kIncluded : Links::kLeftOut,
                            p->counterAvailabilityImageSize, p->pCounterAvailabilityImage);
}

SIM_EXPORT CUptiResult CUPTIAPI
cuptiPmSamplingGetCounterAvailability(CUpti_PmSampling_GetCounterAvailability_Params* p) {
  SIM_PARAMS("cuptiPmSamplingGetCounterAvailability", p,
             CUpti_PmSampling_GetCounterAvailability_Params_STRUCT_SIZE);
  if (!profiler_initialized()) return CUPTI_ERROR_NOT_INITIALIZED;
  if (p->deviceIndex >= Machine::get().devices()) return CUPTI_ERROR_INVALID_PARAMETER;
  return write_availability(static_cast<uint32_t>(p->deviceIndex),
                            Machine::get().version() >= kFirstWithLinks ? Links::kIncluded : Links::kLeftOut,
                            p->counterAvailabilityImageSize, p->pCounterAvailabilityImage);
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiDeviceGetChipName(CUpti_Device_GetChipName_Params* p) {
  SIM_PARAMS("cuptiDeviceGetChipName", p, CUpti_Device_GetChipName_Params_STRUCT_SIZE);
  if (p->deviceIndex >= Machine::get().devices()) return CUPTI_ERROR_INVALID_PARAMETER;
  p->pChipName = kCuptiChips[cupti_chip_of(chip_of_device(static_cast<uint32_t>(p->deviceIndex)))];
  return CUPTI_SUCCESS;
}
