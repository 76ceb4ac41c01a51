#include "counters/metric_host.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "counters/nvperf.h"
#include "cupti/call.h"
#include "filter/nearest_names.h"

namespace cuptiprof {
namespace {

constexpr size_t kLongestName = 512;  // the longest of CUDA 13.0 has some 140 bytes

// CUPTI gets only what could be a name: text from files and command lines reaches this far.
bool could_be_name(const std::string& name) {
  return !name.empty() && name.size() <= kLongestName && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
}

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
  preload_nvperf(api);
}

Error unknown_chip(const Api& api, const std::string& chip) {
  const std::vector<std::string> chips = metric_chips(api);
  std::string upper = chip;
  for (char& c : upper)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  std::string hint;
  if (std::find(chips.begin(), chips.end(), upper) != chips.end()) {
    hint = "did you mean \"" + upper + "\"? Chip names are exact; ";
  } else if (const auto near = nearest_names(upper.substr(0, 64), chips, 3); !near.empty()) {
    hint = "the nearest are ";
    for (size_t i = 0; i < near.size(); ++i) hint += (i ? ", " : "") + near[i];
    hint += "; ";
  }
  hint += "known are";
  for (const std::string& c : chips) hint += " " + c;
  return Error(ErrorKind::kMetric,
               "CUPTI of CUDA " + cuda_version(api.version) + " knows no chip \"" + chip.substr(0, 64) + "\"",
               hint);
}

}  // namespace

std::vector<std::string> metric_chips(const Api& api) {
  require_planning(api);
  CUpti_Profiler_Host_GetSupportedChips_Params p = {};
  p.structSize = CUpti_Profiler_Host_GetSupportedChips_Params_STRUCT_SIZE;
  check(api, api.cuptiProfilerHostGetSupportedChips(&p), "cuptiProfilerHostGetSupportedChips");
  std::vector<std::string> out;
  for (size_t i = 0; i < p.numChips; ++i) out.push_back(text(p.ppChipNames[i]));
  return out;
}

MetricHost::MetricHost(std::shared_ptr<const Api> api, std::string chip, ProfilerType type,
                       std::span<const uint8_t> availability)
    : x_api(std::move(api)),
      x_chip(std::move(chip)),
      x_availability(availability.begin(), availability.end()) {
  require_planning(*x_api);
  CUpti_Profiler_Host_Initialize_Params p = {};
  p.structSize = CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE;
  p.profilerType =
      type == ProfilerType::kRange ? CUPTI_PROFILER_TYPE_RANGE_PROFILER : CUPTI_PROFILER_TYPE_PM_SAMPLING;
  p.pChipName = x_chip.c_str();
  p.pCounterAvailabilityImage = x_availability.empty() ? nullptr : x_availability.data();
  const CUptiResult rc = x_chip.find('\0') == std::string::npos ? x_api->cuptiProfilerHostInitialize(&p)
                                                                : CUPTI_ERROR_INVALID_CHIP_NAME;
  if (rc != CUPTI_SUCCESS) {
    // Older releases have no code of their own for it.
    const std::vector<std::string> chips = metric_chips(*x_api);
    if (std::find(chips.begin(), chips.end(), x_chip) == chips.end()) throw unknown_chip(*x_api, x_chip);
  }
  if (rc == CUPTI_ERROR_NOT_SUPPORTED)
    throw Error(ErrorKind::kMetric,
                "CUPTI of CUDA " + cuda_version(x_api->version) + " has no " +
                    (type == ProfilerType::kRange ? "range profiler" : "PM sampling") + " for " + x_chip,
                type == ProfilerType::kRange ? "an older CUDA may have it"
                                             : "collect by kernel or by range instead of by sampling");
  check(*x_api, rc, "cuptiProfilerHostInitialize", x_chip);
  x_host = p.pHostObject;
}

MetricHost::~MetricHost() {
  CUpti_Profiler_Host_Deinitialize_Params p = {};
  p.structSize = CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE;
  p.pHostObject = x_host;
  x_api->cuptiProfilerHostDeinitialize(&p);
}

std::vector<std::string> MetricHost::base_metrics(CUpti_MetricType type) const {
  CUpti_Profiler_Host_GetBaseMetrics_Params p = {};
  p.structSize = CUpti_Profiler_Host_GetBaseMetrics_Params_STRUCT_SIZE;
  p.pHostObject = x_host;
  p.metricType = type;
  check(*x_api, x_api->cuptiProfilerHostGetBaseMetrics(&p), "cuptiProfilerHostGetBaseMetrics", x_chip);
  std::vector<std::string> out;
  for (size_t i = 0; i < p.numMetrics; ++i) out.push_back(text(p.ppMetricNames[i]));
  return out;
}

std::vector<std::string> MetricHost::sub_metrics(const std::string& name) const {
  const auto known = properties(name);
  if (!known) return {};
  CUpti_Profiler_Host_GetSubMetrics_Params p = {};
  p.structSize = CUpti_Profiler_Host_GetSubMetrics_Params_STRUCT_SIZE;
  p.pHostObject = x_host;
  p.metricType = known->type;
  p.pMetricName = name.c_str();
  check(*x_api, x_api->cuptiProfilerHostGetSubMetrics(&p), "cuptiProfilerHostGetSubMetrics", name);
  std::vector<std::string> out;
  for (size_t i = 0; i < p.numOfSubmetrics; ++i) out.push_back(text(p.ppSubMetrics[i]));
  return out;
}

std::optional<MetricProperties> MetricHost::properties(const std::string& name) const {
  if (!could_be_name(name)) return std::nullopt;
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

ConfigImage MetricHost::configure(std::span<const std::string> metrics) && {
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

void MetricHost::evaluate(std::span<const uint8_t> image, size_t range, std::span<const char* const> names,
                          std::span<double> values) const {
  if (values.size() < names.size()) throw Error(ErrorKind::kMetric, "fewer places for values than names");
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const auto call = [&](size_t first, size_t count) {
    std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(first), count, kNaN);
    CUpti_Profiler_Host_EvaluateToGpuValues_Params p = {};
    p.structSize = CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE;
    p.pHostObject = x_host;
    p.pCounterDataImage = image.data();
    p.counterDataImageSize = image.size();
    p.rangeIndex = range;
    p.ppMetricNames = const_cast<const char**>(names.data() + first);  // an input that is not const in C
    p.numMetrics = count;
    p.pMetricValues = values.data() + first;
    return x_api->cuptiProfilerHostEvaluateToGpuValues(&p);
  };
  if (names.empty()) return;
  const CUptiResult all = call(0, names.size());
  if (all == CUPTI_SUCCESS) return;
  // One that the image lacks fails the whole call: the others are had one by one.
  size_t failed = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    if (call(i, 1) == CUPTI_SUCCESS) continue;
    values[i] = kNaN;
    ++failed;
  }
  if (failed == names.size())
    throw Error(ErrorKind::kMetric,
                "cuptiProfilerHostEvaluateToGpuValues returned " + std::to_string(all) + " (" +
                    result_name(all) + "): an image of " + std::to_string(image.size()) +
                    " bytes has no values for range " + std::to_string(range),
                "the image is damaged, or was made for another chip or with another CUDA");
}

}  // namespace cuptiprof
