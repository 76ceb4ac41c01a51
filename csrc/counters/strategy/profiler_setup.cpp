#include "counters/strategy/profiler_setup.h"

#include "base/error.h"
#include "counters/plan/nvperf.h"
#include "cupti/call.h"

namespace cuptiprof {

void initialize_profiler(const Api& api) {
  if (!api.cuptiProfilerInitialize || !api.cuptiRangeProfilerEnable || !api.cuptiProfilerHostInitialize)
    throw Error(ErrorKind::kMetric,
                "hardware counters need libcupti of CUDA 12.6 or newer; " + api.path + " is older",
                "pip install 'nvidia-cuda-cupti==13.0.*', or name a newer libcupti.so with CUPTIPROF_CUPTI");
  preload_nvperf(api);
  CUpti_Profiler_Initialize_Params p{};
  p.structSize = CUpti_Profiler_Initialize_Params_STRUCT_SIZE;
  check(api, api.cuptiProfilerInitialize(&p), "cuptiProfilerInitialize");
}

std::string chip_name(const Api& api, size_t device) {
  if (!api.cuptiDeviceGetChipName)
    throw Error(ErrorKind::kMetric, "this libcupti cannot name the chip",
                "use libcupti of CUDA 12.6 or newer");
  CUpti_Device_GetChipName_Params p{};
  p.structSize = CUpti_Device_GetChipName_Params_STRUCT_SIZE;
  p.deviceIndex = device;
  check(api, api.cuptiDeviceGetChipName(&p), "cuptiDeviceGetChipName", "device " + std::to_string(device));
  return p.pChipName ? p.pChipName : "";
}

}  // namespace cuptiprof
