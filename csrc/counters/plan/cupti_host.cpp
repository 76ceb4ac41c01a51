// CUPTI's host API.
#include "base/error.h"
#include "counters/plan/host_backend.h"
#include "counters/plan/nvperf.h"
#include "cupti/call.h"

namespace cuptiprof {
namespace {

std::string text(const char* s) { return s ? s : ""; }

void require_planning(const Api& api) {
  if (!api.cuptiProfilerHostInitialize || !api.cuptiProfilerHostDeinitialize ||
      !api.cuptiProfilerHostGetSupportedChips || !api.cuptiProfilerHostGetBaseMetrics ||
      !api.cuptiProfilerHostGetSubMetrics || !api.cuptiProfilerHostGetMetricProperties ||
      !api.cuptiProfilerHostConfigAddMetrics || !api.cuptiProfilerHostGetConfigImageSize ||
      !api.cuptiProfilerHostGetConfigImage || !api.cuptiProfilerHostGetNumOfPasses ||
      !api.cuptiProfilerHostEvaluateToGpuValues)
    throw Error(ErrorKind::kDevice, api.path + " cannot plan metrics: it is older than CUDA 12.6",
                "pip install 'nvidia-cuda-cupti>=13.0', or name a newer libcupti.so with CUPTIPROF_CUPTI");
  preload_nvperf_host(api);
}

class CuptiHost final : public HostBackend {
 public:
  CuptiHost(std::shared_ptr<const Api> api, const std::string& chip, ProfilerType type,
            std::span<const uint8_t> availability)
      : x_api(std::move(api)), x_chip(chip), x_availability(availability.begin(), availability.end()) {
    CUpti_Profiler_Host_Initialize_Params p = {};
    p.structSize = CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE;
    p.profilerType =
        type == ProfilerType::kRange ? CUPTI_PROFILER_TYPE_RANGE_PROFILER : CUPTI_PROFILER_TYPE_PM_SAMPLING;
    p.pChipName = x_chip.c_str();
    p.pCounterAvailabilityImage = x_availability.empty() ? nullptr : x_availability.data();
    x_rc = x_api->cuptiProfilerHostInitialize(&p);
    if (x_rc == CUPTI_SUCCESS) x_host = p.pHostObject;
  }

  ~CuptiHost() override {
    if (!x_host) return;
    CUpti_Profiler_Host_Deinitialize_Params p = {};
    p.structSize = CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE;
    p.pHostObject = x_host;
    x_api->cuptiProfilerHostDeinitialize(&p);
  }
  CuptiHost(const CuptiHost&) = delete;
  CuptiHost& operator=(const CuptiHost&) = delete;

  CUptiResult rc() const { return x_rc; }  // of the initialisation; nothing else works after a failure

  std::vector<std::string> base_metrics(CUpti_MetricType type) const override {
    CUpti_Profiler_Host_GetBaseMetrics_Params p = {};
    p.structSize = CUpti_Profiler_Host_GetBaseMetrics_Params_STRUCT_SIZE;
    p.pHostObject = x_host;
    p.metricType = type;
    check(*x_api, x_api->cuptiProfilerHostGetBaseMetrics(&p), "cuptiProfilerHostGetBaseMetrics", x_chip);
    std::vector<std::string> out;
    for (size_t i = 0; i < p.numMetrics; ++i) out.push_back(text(p.ppMetricNames[i]));
    return out;
  }

  std::vector<std::string> sub_metrics(const std::string& name, CUpti_MetricType type) const override {
    CUpti_Profiler_Host_GetSubMetrics_Params p = {};
    p.structSize = CUpti_Profiler_Host_GetSubMetrics_Params_STRUCT_SIZE;
    p.pHostObject = x_host;
    p.metricType = type;
    p.pMetricName = name.c_str();
    check(*x_api, x_api->cuptiProfilerHostGetSubMetrics(&p), "cuptiProfilerHostGetSubMetrics", name);
    std::vector<std::string> out;
    for (size_t i = 0; i < p.numOfSubmetrics; ++i) out.push_back(text(p.ppSubMetrics[i]));
    return out;
  }

  std::optional<MetricProperties> properties(const std::string& name) const override {
    CUpti_Profiler_Host_GetMetricProperties_Params p = {};
    p.structSize = CUpti_Profiler_Host_GetMetricProperties_Params_STRUCT_SIZE;
    p.pHostObject = x_host;
    p.pMetricName = name.c_str();
    const CUptiResult rc = x_api->cuptiProfilerHostGetMetricProperties(&p);
    // The name is the only argument that can be wrong.
    if (rc == CUPTI_ERROR_INVALID_METRIC_NAME || rc == CUPTI_ERROR_INVALID_PARAMETER) return std::nullopt;
    check(*x_api, rc, "cuptiProfilerHostGetMetricProperties", name);
    return MetricProperties{text(p.pDescription), text(p.pHwUnit), text(p.pDimUnit), p.metricType};
  }

  ConfigImage configure(std::span<const std::string> metrics) override {
    std::vector<const char*> names;
    for (const std::string& m : metrics) names.push_back(m.c_str());
    CUpti_Profiler_Host_ConfigAddMetrics_Params add = {};
    add.structSize = CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE;
    add.pHostObject = x_host;
    add.ppMetricNames = names.data();
    add.numMetrics = names.size();
    ConfigImage out;
    out.rc = x_api->cuptiProfilerHostConfigAddMetrics(&add);
    if (out.rc != CUPTI_SUCCESS) return out;

    CUpti_Profiler_Host_GetConfigImageSize_Params size = {};
    size.structSize = CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE;
    size.pHostObject = x_host;
    check(*x_api, x_api->cuptiProfilerHostGetConfigImageSize(&size), "cuptiProfilerHostGetConfigImageSize");
    out.image.resize(size.configImageSize);
    CUpti_Profiler_Host_GetConfigImage_Params image = {};
    image.structSize = CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE;
    image.pHostObject = x_host;
    image.configImageSize = out.image.size();
    image.pConfigImage = out.image.data();
    check(*x_api, x_api->cuptiProfilerHostGetConfigImage(&image), "cuptiProfilerHostGetConfigImage");
    CUpti_Profiler_Host_GetNumOfPasses_Params passes = {};
    passes.structSize = CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE;
    passes.configImageSize = out.image.size();
    passes.pConfigImage = out.image.data();
    check(*x_api, x_api->cuptiProfilerHostGetNumOfPasses(&passes), "cuptiProfilerHostGetNumOfPasses");
    out.passes = static_cast<uint32_t>(passes.numOfPasses);
    return out;
  }

  CUptiResult evaluate(std::span<const uint8_t> image, size_t range, std::span<const char* const> names,
                       double* values) const override {
    CUpti_Profiler_Host_EvaluateToGpuValues_Params p = {};
    p.structSize = CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE;
    p.pHostObject = x_host;
    p.pCounterDataImage = image.data();
    p.counterDataImageSize = image.size();
    p.rangeIndex = range;
    p.ppMetricNames = const_cast<const char**>(names.data());  // an input that is not const in C
    p.numMetrics = names.size();
    p.pMetricValues = values;
    return x_api->cuptiProfilerHostEvaluateToGpuValues(&p);
  }

 private:
  const std::shared_ptr<const Api> x_api;
  const std::string x_chip;
  const std::vector<uint8_t> x_availability;  // CUPTI keeps a pointer to it
  CUpti_Profiler_Host_Object* x_host = nullptr;
  CUptiResult x_rc = CUPTI_SUCCESS;
};

}  // namespace

std::vector<std::string> cupti_chips(const Api& api) {
  require_planning(api);
  CUpti_Profiler_Host_GetSupportedChips_Params p = {};
  p.structSize = CUpti_Profiler_Host_GetSupportedChips_Params_STRUCT_SIZE;
  check(api, api.cuptiProfilerHostGetSupportedChips(&p), "cuptiProfilerHostGetSupportedChips");
  std::vector<std::string> out;
  for (size_t i = 0; i < p.numChips; ++i) out.push_back(text(p.ppChipNames[i]));
  return out;
}

std::unique_ptr<HostBackend> cupti_host(std::shared_ptr<const Api> api, const std::string& chip,
                                        ProfilerType type, std::span<const uint8_t> availability) {
  require_planning(*api);
  auto host = std::make_unique<CuptiHost>(api, chip, type, availability);
  if (host->rc() == CUPTI_SUCCESS) return host;
  // Older releases have no code of their own for an unknown chip.
  bool known = false;
  for (const std::string& c : cupti_chips(*api)) known |= c == chip;
  if (!known) return nullptr;
  if (host->rc() == CUPTI_ERROR_NOT_SUPPORTED)
    throw Error(ErrorKind::kMetric,
                "CUPTI of CUDA " + cuda_version(api->version) + " has no " +
                    (type == ProfilerType::kRange ? "range profiler" : "PM sampling") + " for " + chip,
                type == ProfilerType::kRange ? "an older CUDA may have it"
                                             : "collect by kernel or by range instead of by sampling");
  check(*api, host->rc(), "cuptiProfilerHostInitialize", chip);
  return nullptr;
}

}  // namespace cuptiprof
