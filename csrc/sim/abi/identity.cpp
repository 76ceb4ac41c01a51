// Identity queries and what the library can do.
#include <cupti_activity.h>
#include <cupti_result.h>
#include <cupti_version.h>

#include <iterator>

#include "sim/activity/callbacks.h"
#include "sim/activity/clients.h"
#include "sim/activity/record_sizes.h"
#include "sim/cbid_names.h"
#include "sim/machine/current_context.h"
#include "sim/machine/faults.h"
#include "sim/machine/machine.h"

using namespace sim;

SIM_EXPORT CUptiResult CUPTIAPI cuptiGetVersion(uint32_t* version) {
  SIM_FAULTS("cuptiGetVersion");
  if (!version) return CUPTI_ERROR_INVALID_PARAMETER;
  *version = api_version(Machine::get().version());
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiGetTimestamp(uint64_t* timestamp) {
  SIM_FAULTS("cuptiGetTimestamp");
  if (!timestamp) return CUPTI_ERROR_INVALID_PARAMETER;
  if (sharing()) return CUPTI_ERROR_NOT_COMPATIBLE;
  Machine& m = Machine::get();
  *timestamp = m.clock().timestamp(m.now());
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiGetContextId(CUcontext context, uint32_t* id) {
  SIM_FAULTS("cuptiGetContextId");
  if (!id) return CUPTI_ERROR_INVALID_PARAMETER;
  const Context* c = Machine::get().find_context(context ? context : current_context());
  if (!c) return CUPTI_ERROR_INVALID_CONTEXT;
  *id = c->id;
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiGetDeviceId(CUcontext context, uint32_t* id) {
  SIM_FAULTS("cuptiGetDeviceId");
  if (!id) return CUPTI_ERROR_INVALID_PARAMETER;
  const Context* c = Machine::get().find_context(context ? context : current_context());
  if (!c) return CUPTI_ERROR_INVALID_CONTEXT;
  *id = c->device;
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t,
                                                   uint32_t* id) {
  SIM_FAULTS("cuptiGetStreamIdEx");
  if (!id) return CUPTI_ERROR_INVALID_PARAMETER;
  Context* c = Machine::get().find_context(context ? context : current_context());
  if (!c) return CUPTI_ERROR_INVALID_CONTEXT;
  if (!stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) {
    *id = kDefaultStream;
    return CUPTI_SUCCESS;
  }
  const Stream* s = Machine::get().find_stream(c, stream);
  if (!s) return CUPTI_ERROR_INVALID_STREAM;
  *id = s->id;
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiGetStreamId(CUcontext context, CUstream stream, uint32_t* id) {
  return cuptiGetStreamIdEx(context, stream, 0, id);
}

// The compute capabilities that NVIDIA's 12.6 and 13.0 say they support.
SIM_EXPORT CUptiResult CUPTIAPI cuptiComputeCapabilitySupported(int major, int minor, int* support) {
  SIM_FAULTS("cuptiComputeCapabilitySupported");
  if (!support) return CUPTI_ERROR_INVALID_PARAMETER;
  constexpr int before_13[] = {50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90};
  constexpr int from_13[] = {75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121};
  const int wanted = major * 10 + minor;
  *support = 0;
  if (minor < 0 || minor > 9) return CUPTI_SUCCESS;
  if (Machine::get().version() >= 130000) {
    for (const int cc : from_13) *support |= cc == wanted;
  } else {
    for (const int cc : before_13) *support |= cc == wanted;
  }
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiDeviceSupported(CUdevice device, int* support) {
  SIM_FAULTS("cuptiDeviceSupported");
  if (!support) return CUPTI_ERROR_INVALID_PARAMETER;
  if (device < 0 || static_cast<uint32_t>(device) >= Machine::get().devices())
    return CUPTI_ERROR_INVALID_DEVICE;
  const Chip& chip = Machine::get().chip();
  return cuptiComputeCapabilitySupported(static_cast<int>(chip.major), static_cast<int>(chip.minor), support);
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiDeviceVirtualizationMode(CUdevice device,
                                                              CUpti_DeviceVirtualizationMode* mode) {
  SIM_FAULTS("cuptiDeviceVirtualizationMode");
  if (!mode) return CUPTI_ERROR_INVALID_PARAMETER;
  if (device < 0 || static_cast<uint32_t>(device) >= Machine::get().devices())
    return CUPTI_ERROR_INVALID_DEVICE;
  *mode = CUPTI_DEVICE_VIRTUALIZATION_MODE_NONE;
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult result, const char** text) {
  if (!text) return CUPTI_ERROR_INVALID_PARAMETER;
  for (const auto& r : k_result_names) {
    if (r.code != static_cast<int>(result)) continue;
    *text = r.name;
    return CUPTI_SUCCESS;
  }
  *text = "<unknown>";
  return CUPTI_ERROR_INVALID_PARAMETER;
}

// NVIDIA's gives the code's name as well.
SIM_EXPORT CUptiResult CUPTIAPI cuptiGetErrorMessage(CUptiResult result, const char** text) {
  return cuptiGetResultString(result, text);
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid,
                                                     const char** name) {
  if (!name) return CUPTI_ERROR_INVALID_PARAMETER;
  const char* found = nullptr;
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API && cbid < std::size(k_runtime_names))
    found = k_runtime_names[cbid];
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API && cbid < std::size(k_driver_names)) found = k_driver_names[cbid];
  const bool api = domain == CUPTI_CB_DOMAIN_RUNTIME_API || domain == CUPTI_CB_DOMAIN_DRIVER_API;
  if (api && cbid == 0) found = "INVALID";
  if (!found) return CUPTI_ERROR_INVALID_PARAMETER;
  *name = found;
  return CUPTI_SUCCESS;
}
