#include "counters/plan/nvpw_library.h"

#include <dlfcn.h>

#include "base/error.h"
#include "counters/plan/nvperf.h"

namespace cuptiprof {
namespace {

using namespace nvpw;

constexpr const char* kHint =
    "plan with pip install 'nvidia-cuda-cupti==13.0.*', which needs no driver for it";

class Config {
 public:
  Config(const NvpwLibrary& library, const std::string& chip, ProfilerType type) : x_library(library) {
    if (type == ProfilerType::kRange) {
      CudaRawMetricsConfigCreate p = {};
      p.activity_kind = kActivityProfiler;
      p.chip = chip.c_str();
      library.call("NVPW_CUDA_RawMetricsConfig_Create_V2", p,
                   CP_NVPW_SIZE(CudaRawMetricsConfigCreate, config));
      x_config = p.config;
    } else {
      DeviceRawMetricsConfigCreate p = {};
      p.activity_kind = kActivityRealtimeSampled;
      p.chip = chip.c_str();
      library.call("NVPW_Device_RawMetricsConfig_Create", p,
                   CP_NVPW_SIZE(DeviceRawMetricsConfigCreate, config));
      x_config = p.config;
    }
  }
  ~Config() {
    RawMetricsConfigDestroy p = {};
    p.config = x_config;
    x_library.attempt("NVPW_RawMetricsConfig_Destroy", p, CP_NVPW_SIZE(RawMetricsConfigDestroy, config));
  }
  Config(const Config&) = delete;
  Config& operator=(const Config&) = delete;
  RawMetricsConfig* get() const { return x_config; }

 private:
  const NvpwLibrary& x_library;
  RawMetricsConfig* x_config = nullptr;
};

}  // namespace

NvpwLibrary::NvpwLibrary(const Api& api) : x_handle(preload_nvperf_host(api)), x_path(api.path) {
  InitializeHost p;
  call("NVPW_InitializeHost", p, sizeof p);
  // Destructors call these and cannot report that one is missing.
  function_named("NVPW_MetricsEvaluator_Destroy");
  function_named("NVPW_RawMetricsConfig_Destroy");
}

void* NvpwLibrary::function_named(const char* function) const {
  void* f = dlsym(x_handle, function);
  if (!f)
    throw Error(ErrorKind::kDevice, "the libnvperf_host.so beside " + x_path + " lacks " + function, kHint);
  return f;
}

void NvpwLibrary::fail(const char* function, Status status) const {
  throw Error(ErrorKind::kDevice,
              std::string(function) + " of the libnvperf_host.so beside " + x_path + " returned " +
                  std::to_string(status),
              kHint);
}

ConfigImage nvpw_configure(const NvpwLibrary& library, const std::string& chip, ProfilerType type,
                           const std::vector<std::string>& raw) {
  ConfigImage out;
  const Config config(library, chip, type);
  BeginPassGroup begin = {};
  begin.config = config.get();
  library.call("NVPW_RawMetricsConfig_BeginPassGroup", begin, CP_NVPW_SIZE(BeginPassGroup, max_passes));
  std::vector<RawMetricRequest> requests;
  for (const std::string& name : raw) {
    RawMetricRequest r = {};
    r.struct_size = CP_NVPW_SIZE(RawMetricRequest, keep_instances);
    r.name = name.c_str();
    r.isolated = 1;
    r.keep_instances = 1;
    requests.push_back(r);
  }
  AddMetrics add = {};
  add.config = config.get();
  add.requests = requests.data();
  add.count = requests.size();
  if (library.attempt("NVPW_RawMetricsConfig_AddMetrics", add, CP_NVPW_SIZE(AddMetrics, count)) != 0) {
    out.rc = CUPTI_ERROR_NOT_SUPPORTED;
    return out;
  }
  EndPassGroup end = {};
  end.config = config.get();
  library.call("NVPW_RawMetricsConfig_EndPassGroup", end, CP_NVPW_SIZE(EndPassGroup, config));
  GenerateConfigImage generate = {};
  generate.config = config.get();
  library.call("NVPW_RawMetricsConfig_GenerateConfigImage", generate,
               CP_NVPW_SIZE(GenerateConfigImage, merge_pass_groups));
  GetConfigImage image = {};
  image.config = config.get();
  library.call("NVPW_RawMetricsConfig_GetConfigImage", image, CP_NVPW_SIZE(GetConfigImage, copied));
  out.image.resize(image.copied);
  image.allocated = out.image.size();
  image.buffer = out.image.data();
  library.call("NVPW_RawMetricsConfig_GetConfigImage", image, CP_NVPW_SIZE(GetConfigImage, copied));
  GetNumPasses passes = {};
  passes.config = config.get();
  library.call("NVPW_RawMetricsConfig_GetNumPasses_V2", passes, CP_NVPW_SIZE(GetNumPasses, passes));
  out.passes = static_cast<uint32_t>(passes.passes);
  return out;
}

}  // namespace cuptiprof
