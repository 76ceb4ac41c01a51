// The host side of counters: planning and evaluation, no GPU needed. Result codes as libcupti 13.0 gives
// them.
#include <cupti_profiler_host.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "sim/abi/profiler_params.h"
#include "sim/counters/availability.h"
#include "sim/counters/counter_image.h"
#include "sim/counters/metric_eval.h"
#include "sim/counters/range_name.h"

struct CUpti_Profiler_Host_Object {
  uint32_t chip;
  sim::Profiler profiler;
  bool dead = false;  // after a metric was refused, as NVIDIA's
  bool configured = false;
  std::optional<sim::Availability> availability;
  sim::CounterConfig config;
  std::vector<const char*> names;  // of the last list handed out
};

namespace sim {
namespace {

std::mutex g_hosts_mutex;  // guards the list; an object itself belongs to one thread at a time
std::map<CUpti_Profiler_Host_Object*, std::unique_ptr<CUpti_Profiler_Host_Object>>& objects() {
  // Never destroyed (Machine::get).
  static auto* list = new std::map<CUpti_Profiler_Host_Object*, std::unique_ptr<CUpti_Profiler_Host_Object>>;
  return *list;
}

bool alive(CUpti_Profiler_Host_Object* object) {
  const std::lock_guard lock(g_hosts_mutex);
  return objects().contains(object);
}

bool counts_links(RawId id) { return raws()[id].unit == Unit::kLink && !raws()[id].free; }

bool counts_core(RawId id) {
  const Raw& r = raws()[id];
  return !r.free && (r.unit == Unit::kSm || r.unit == Unit::kSmsp || r.unit == Unit::kL1tex ||
                     r.unit == Unit::kLts || r.unit == Unit::kDram);
}

// An image that lacks the counters of whole devices leaves none of them.
bool is_available(const CUpti_Profiler_Host_Object& object, const MetricRef& ref,
                  const std::vector<RawId>& needed) {
  if (!object.availability) return true;
  const auto& lacking = object.availability->lacking;
  if (std::find(lacking.begin(), lacking.end(), ref.metric->name) != lacking.end()) return false;
  return object.availability->links == Links::kIncluded ||
         std::none_of(needed.begin(), needed.end(), counts_links);
}

}  // namespace
}  // namespace sim

using namespace sim;

SIM_EXPORT CUptiResult CUPTIAPI cuptiProfilerHostInitialize(CUpti_Profiler_Host_Initialize_Params* p) {
  SIM_PARAMS("cuptiProfilerHostInitialize", p, CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE);
  if (p->profilerType != CUPTI_PROFILER_TYPE_RANGE_PROFILER &&
      p->profilerType != CUPTI_PROFILER_TYPE_PM_SAMPLING)
    return CUPTI_ERROR_INVALID_PARAMETER;
  if (!p->pChipName) return CUPTI_ERROR_INVALID_PARAMETER;
  const int chip = cupti_chip_named(p->pChipName);
  if (chip < 0) return CUPTI_ERROR_INVALID_CHIP_NAME;
  const Profiler profiler =
      p->profilerType == CUPTI_PROFILER_TYPE_PM_SAMPLING ? Profiler::kSampling : Profiler::kRange;
  if (profiler == Profiler::kSampling && chip == kGv100) return CUPTI_ERROR_NOT_SUPPORTED;  // it has none
  auto object = std::make_unique<CUpti_Profiler_Host_Object>();
  object->chip = static_cast<uint32_t>(chip);
  object->profiler = profiler;
  object->config.chip = object->chip;
  object->config.profiler = profiler;
  if (p->pCounterAvailabilityImage) {
    object->availability = read_availability(p->pCounterAvailabilityImage);
    if (!object->availability || object->availability->chip != p->pChipName)
      return CUPTI_ERROR_INVALID_PARAMETER;
  }
  p->pHostObject = object.get();
  const std::lock_guard lock(g_hosts_mutex);
  objects()[p->pHostObject] = std::move(object);
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiProfilerHostDeinitialize(CUpti_Profiler_Host_Deinitialize_Params* p) {
  SIM_PARAMS("cuptiProfilerHostDeinitialize", p, CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE);
  const std::lock_guard lock(g_hosts_mutex);
  return objects().erase(p->pHostObject) ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

SIM_EXPORT CUptiResult CUPTIAPI
cuptiProfilerHostGetSupportedChips(CUpti_Profiler_Host_GetSupportedChips_Params* p) {
  SIM_PARAMS("cuptiProfilerHostGetSupportedChips", p,
             CUpti_Profiler_Host_GetSupportedChips_Params_STRUCT_SIZE);
  p->numChips = kNumCuptiChips;
  p->ppChipNames = kCuptiChips;
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI
cuptiProfilerHostGetBaseMetrics(CUpti_Profiler_Host_GetBaseMetrics_Params* p) {
  SIM_PARAMS("cuptiProfilerHostGetBaseMetrics", p, CUpti_Profiler_Host_GetBaseMetrics_Params_STRUCT_SIZE);
  if (!alive(p->pHostObject) || p->metricType < 0 || p->metricType >= CUPTI_METRIC_TYPE__COUNT)
    return CUPTI_ERROR_INVALID_PARAMETER;
  auto& object = *p->pHostObject;
  object.names.clear();
  for (const Metric& m : metrics())
    if (static_cast<int>(m.type) == p->metricType && chip_has(m, object.chip, object.profiler))
      object.names.push_back(m.name.c_str());
  p->ppMetricNames = object.names.data();
  p->numMetrics = object.names.size();
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiProfilerHostGetSubMetrics(CUpti_Profiler_Host_GetSubMetrics_Params* p) {
  SIM_PARAMS("cuptiProfilerHostGetSubMetrics", p, CUpti_Profiler_Host_GetSubMetrics_Params_STRUCT_SIZE);
  if (!alive(p->pHostObject) || !p->pMetricName) return CUPTI_ERROR_INVALID_PARAMETER;
  auto& object = *p->pHostObject;
  const auto ref = find_metric(p->pMetricName, object.chip, object.profiler);
  if (!ref) return CUPTI_ERROR_INVALID_METRIC_NAME;
  if (static_cast<int>(ref->metric->type) != p->metricType) return CUPTI_ERROR_INVALID_PARAMETER;
  object.names.clear();
  for (const std::string& s : submetrics(ref->metric->type)) object.names.push_back(s.c_str());
  p->ppSubMetrics = object.names.data();
  p->numOfSubmetrics = object.names.size();
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI
cuptiProfilerHostGetMetricProperties(CUpti_Profiler_Host_GetMetricProperties_Params* p) {
  SIM_PARAMS("cuptiProfilerHostGetMetricProperties", p,
             CUpti_Profiler_Host_GetMetricProperties_Params_STRUCT_SIZE);
  if (!alive(p->pHostObject) || !p->pMetricName) return CUPTI_ERROR_INVALID_PARAMETER;
  const auto ref = find_metric(p->pMetricName, p->pHostObject->chip, p->pHostObject->profiler);
  if (!ref) return CUPTI_ERROR_INVALID_METRIC_NAME;
  p->pDescription = ref->metric->description.c_str();
  p->pHwUnit = ref->metric->unit_name.c_str();
  p->pDimUnit = kept_text(dimension_of(*ref));
  p->metricType = static_cast<CUpti_MetricType>(ref->metric->type);
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI
cuptiProfilerHostConfigAddMetrics(CUpti_Profiler_Host_ConfigAddMetrics_Params* p) {
  SIM_PARAMS("cuptiProfilerHostConfigAddMetrics", p, CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE);
  if (!alive(p->pHostObject)) return CUPTI_ERROR_INVALID_PARAMETER;
  auto& object = *p->pHostObject;
  if (object.dead) return CUPTI_ERROR_UNKNOWN;
  if (p->numMetrics && !p->ppMetricNames) return CUPTI_ERROR_INVALID_PARAMETER;
  std::vector<RawId> ids;
  for (size_t i = 0; i < p->numMetrics; ++i) {
    const char* name = p->ppMetricNames[i];
    const auto ref = name ? find_metric(name, object.chip, object.profiler) : std::nullopt;
    if (!ref || !ref->complete) {
      object.dead = true;
      return CUPTI_ERROR_INVALID_PARAMETER;
    }
    const auto needed = needed_raws(*ref);
    if (!is_available(object, *ref, needed)) {
      object.dead = true;
      return CUPTI_ERROR_NOT_SUPPORTED;
    }
    ids.insert(ids.end(), needed.begin(), needed.end());
  }
  if (object.profiler == Profiler::kRange && std::any_of(ids.begin(), ids.end(), counts_links) &&
      std::any_of(ids.begin(), ids.end(), counts_core)) {
    object.dead = true;
    return CUPTI_ERROR_NOT_SUPPORTED;
  }
  // Each call is a group of passes of its own.
  CounterConfig& all = object.config;
  std::erase_if(ids, [&](RawId id) {
    return std::any_of(all.entries.begin(), all.entries.end(), [id](const auto& e) { return e.id == id; });
  });
  const CounterConfig added = plan_passes(object.chip, object.profiler, ids);
  for (const auto& e : added.entries)
    all.entries.push_back({e.id, static_cast<uint16_t>(e.pass + all.passes)});
  all.passes += added.passes;
  std::sort(all.entries.begin(), all.entries.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  object.configured = true;
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI
cuptiProfilerHostGetConfigImageSize(CUpti_Profiler_Host_GetConfigImageSize_Params* p) {
  SIM_PARAMS("cuptiProfilerHostGetConfigImageSize", p,
             CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE);
  if (!alive(p->pHostObject)) return CUPTI_ERROR_INVALID_PARAMETER;
  if (p->pHostObject->dead || !p->pHostObject->configured) return CUPTI_ERROR_UNKNOWN;
  p->configImageSize = config_image(p->pHostObject->config).size();
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI
cuptiProfilerHostGetConfigImage(CUpti_Profiler_Host_GetConfigImage_Params* p) {
  SIM_PARAMS("cuptiProfilerHostGetConfigImage", p, CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE);
  if (!alive(p->pHostObject) || !p->pConfigImage) return CUPTI_ERROR_INVALID_PARAMETER;
  if (p->pHostObject->dead || !p->pHostObject->configured) return CUPTI_ERROR_UNKNOWN;
  const auto image = config_image(p->pHostObject->config);
  if (p->configImageSize < image.size()) return CUPTI_ERROR_INVALID_PARAMETER;
  std::memcpy(p->pConfigImage, image.data(), image.size());
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI
cuptiProfilerHostGetNumOfPasses(CUpti_Profiler_Host_GetNumOfPasses_Params* p) {
  SIM_PARAMS("cuptiProfilerHostGetNumOfPasses", p, CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE);
  CounterConfig config;
  if (!read_config(p->pConfigImage, p->configImageSize, config)) return CUPTI_ERROR_INVALID_PARAMETER;
  p->numOfPasses = config.passes;
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI
cuptiProfilerHostEvaluateToGpuValues(CUpti_Profiler_Host_EvaluateToGpuValues_Params* p) {
  SIM_PARAMS("cuptiProfilerHostEvaluateToGpuValues", p,
             CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE);
  if (!alive(p->pHostObject) || (p->numMetrics && (!p->ppMetricNames || !p->pMetricValues)))
    return CUPTI_ERROR_INVALID_PARAMETER;
  const auto& object = *p->pHostObject;
  const CounterData data(p->pCounterDataImage, p->counterDataImageSize);
  if (!data.valid() || p->rangeIndex >= data.rows() || data.chip() != object.chip)
    return CUPTI_ERROR_INVALID_PARAMETER;
  for (size_t i = 0; i < p->numMetrics; ++i) {
    const char* name = p->ppMetricNames[i];
    const auto ref = name ? find_metric(name, object.chip, object.profiler) : std::nullopt;
    if (!ref || !ref->complete) return CUPTI_ERROR_INVALID_METRIC_NAME;
    p->pMetricValues[i] =
        evaluate(*ref, data.product(), [&](RawId id) { return data.value(p->rangeIndex, id); });
  }
  return CUPTI_SUCCESS;
}

// The caller frees the name.
SIM_EXPORT CUptiResult CUPTIAPI cuptiProfilerHostGetRangeName(CUpti_Profiler_Host_GetRangeName_Params* p) {
  SIM_PARAMS("cuptiProfilerHostGetRangeName", p, CUpti_Profiler_Host_GetRangeName_Params_STRUCT_SIZE);
  const CounterData data(p->pCounterDataImage, p->counterDataImageSize);
  if (!data.valid() || p->rangeIndex >= data.rows()) return CUPTI_ERROR_INVALID_PARAMETER;
  p->pRangeName = strdup(joined_range_name(data.name(p->rangeIndex), p->delimiter).c_str());
  return p->pRangeName ? CUPTI_SUCCESS : CUPTI_ERROR_OUT_OF_MEMORY;
}
