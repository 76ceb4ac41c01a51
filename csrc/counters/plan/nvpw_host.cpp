// Planning with libnvperf_host alone: from CUDA 13.2 on CUPTI's host API needs a driver, this does not. What
// it plans is for people to read; a machine with a driver plans again, with CUPTI, before it collects.
#include <algorithm>
#include <array>
#include <set>

#include "base/error.h"
#include "counters/plan/host_backend.h"
#include "counters/plan/nvpw_library.h"

namespace cuptiprof {
namespace {

using namespace nvpw;

constexpr std::array<const char*, 4> kRollups = {".avg", ".max", ".min", ".sum"};
// By NVPW_Submetric; null: CUPTI does not offer it (frames and regions are of graphics).
constexpr std::array<const char*, 22> kSubmetrics = {"",
                                                     ".peak_sustained",
                                                     ".peak_sustained_active",
                                                     ".peak_sustained_active.per_second",
                                                     ".peak_sustained_elapsed",
                                                     ".peak_sustained_elapsed.per_second",
                                                     nullptr,
                                                     nullptr,
                                                     nullptr,
                                                     nullptr,
                                                     ".per_cycle_active",
                                                     ".per_cycle_elapsed",
                                                     nullptr,
                                                     nullptr,
                                                     ".per_second",
                                                     ".pct_of_peak_sustained_active",
                                                     ".pct_of_peak_sustained_elapsed",
                                                     nullptr,
                                                     nullptr,
                                                     ".max_rate",
                                                     ".pct",
                                                     ".ratio"};
// CUPTI's range profiler does not collect these together with the rest of the chip, though libnvperf would;
// the time goes with both (every counter of CUDA 13.0 on three chips was tried).
const std::set<std::string> kApart = {"pcie", "nvlrx", "nvltx", "ctc"};
constexpr std::string_view kWithBoth = "gpu__time_duration";

class NvpwHost final : public HostBackend {
 public:
  NvpwHost(const Api& api, std::string chip, ProfilerType type)
      : x_library(api), x_chip(std::move(chip)), x_type(type) {
    if (type == ProfilerType::kRange) {
      CudaScratchBufferSize size = {};
      size.chip = x_chip.c_str();
      x_library.call("NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize", size,
                     CP_NVPW_SIZE(CudaScratchBufferSize, size));
      x_scratch.resize(size.size);
      CudaEvaluatorInitialize p = {};
      p.scratch = x_scratch.data();
      p.scratch_size = x_scratch.size();
      p.chip = x_chip.c_str();
      x_library.call("NVPW_CUDA_MetricsEvaluator_Initialize", p,
                     CP_NVPW_SIZE(CudaEvaluatorInitialize, evaluator));
      x_evaluator = p.evaluator;
    } else {
      DeviceScratchBufferSize size = {};
      size.chip = x_chip.c_str();
      x_library.call("NVPW_Device_MetricsEvaluator_CalculateScratchBufferSize", size,
                     CP_NVPW_SIZE(DeviceScratchBufferSize, size));
      x_scratch.resize(size.size);
      DeviceEvaluatorInitialize p = {};
      p.scratch = x_scratch.data();
      p.scratch_size = x_scratch.size();
      p.chip = x_chip.c_str();
      x_library.call("NVPW_Device_MetricsEvaluator_Initialize", p,
                     CP_NVPW_SIZE(DeviceEvaluatorInitialize, evaluator));
      x_evaluator = p.evaluator;
    }
  }
  ~NvpwHost() override {
    EvaluatorDestroy p = {};
    p.evaluator = x_evaluator;
    x_library.attempt("NVPW_MetricsEvaluator_Destroy", p, CP_NVPW_SIZE(EvaluatorDestroy, evaluator));
  }
  NvpwHost(const NvpwHost&) = delete;
  NvpwHost& operator=(const NvpwHost&) = delete;

  std::vector<std::string> base_metrics(CUpti_MetricType type) const override {
    GetMetricNames p = {};
    p.evaluator = x_evaluator;
    p.type = static_cast<uint8_t>(type);
    x_library.call("NVPW_MetricsEvaluator_GetMetricNames", p, CP_NVPW_SIZE(GetMetricNames, count));
    std::vector<std::string> out;
    for (size_t i = 0; i < p.count; ++i) out.emplace_back(p.names + p.offsets[i]);
    std::sort(out.begin(), out.end());
    return out;
  }

  std::vector<std::string> sub_metrics(const std::string&, CUpti_MetricType type) const override {
    GetSupportedSubmetrics p = {};
    p.evaluator = x_evaluator;
    p.type = static_cast<uint8_t>(type);
    x_library.call("NVPW_MetricsEvaluator_GetSupportedSubmetrics", p,
                   CP_NVPW_SIZE(GetSupportedSubmetrics, count));
    std::vector<std::string> out;
    for (const char* rollup : kRollups) {
      for (size_t i = 0; i < p.count; ++i)
        if (const uint16_t s = p.submetrics[i]; s < kSubmetrics.size() && kSubmetrics[s])
          out.push_back((type == CUPTI_METRIC_TYPE_RATIO ? "" : std::string(rollup)) + kSubmetrics[s]);
      if (type == CUPTI_METRIC_TYPE_RATIO) break;  // a ratio has no roll-up
    }
    return out;
  }

  std::optional<MetricProperties> properties(const std::string& name) const override {
    GetMetricTypeAndIndex p = {};
    p.evaluator = x_evaluator;
    p.name = name.c_str();
    if (x_library.attempt("NVPW_MetricsEvaluator_GetMetricTypeAndIndex", p,
                          CP_NVPW_SIZE(GetMetricTypeAndIndex, index)) != 0)
      return std::nullopt;
    MetricProperties out;
    out.type = static_cast<CUpti_MetricType>(p.type);
    // A name without a roll-up has no request of its own: any of its sub-metrics tells the unit.
    MetricEvalRequest request = {};
    if (!convert(name, request)) {
      const size_t unit = name.find("__");
      if (name.find('.', unit == std::string::npos ? 0 : unit) != std::string::npos) return std::nullopt;
      // By CUpti_MetricType: counter, ratio, throughput.
      constexpr std::array kAny = {".sum", ".ratio", ".avg.pct_of_peak_sustained_elapsed"};
      if (!convert(name + kAny[std::min<size_t>(p.type, kAny.size() - 1)], request)) return std::nullopt;
    }
    describe(p.type, p.index, out);
    out.dim_unit = unit_text(request);
    return out;
  }

  ConfigImage configure(std::span<const std::string> metrics) override {
    ConfigImage out;
    bool some_apart = false, some_together = false;
    std::vector<std::string> raw;  // in order of first use, as CUPTI adds them: the schedule depends on it
    for (const std::string& name : metrics) {
      MetricEvalRequest request = {};
      if (!convert(name, request)) {
        out.rc = CUPTI_ERROR_INVALID_PARAMETER;
        return out;
      }
      dependencies(request, raw);
      if (name.starts_with(kWithBoth)) continue;
      MetricProperties p;
      describe(request.type, request.index, p);
      (kApart.contains(p.hw_unit) ? some_apart : some_together) = true;
    }
    if (x_type == ProfilerType::kRange && some_apart && some_together) {
      out.rc = CUPTI_ERROR_NOT_SUPPORTED;
      return out;
    }
    return nvpw_configure(x_library, x_chip, x_type, raw);
  }

  CUptiResult evaluate(std::span<const uint8_t>, size_t, std::span<const char* const>,
                       double*) const override {
    throw Error(ErrorKind::kDevice, "counter data cannot be evaluated with this libcupti without a driver",
                "evaluate with pip install 'nvidia-cuda-cupti==13.0.*', or on the machine that collected");
  }

 private:
  bool convert(const std::string& name, MetricEvalRequest& request) const {
    ConvertName p = {};
    p.evaluator = x_evaluator;
    p.name = name.c_str();
    p.request = &request;
    p.request_size = CP_NVPW_SIZE(MetricEvalRequest, submetric);
    return x_library.attempt("NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest", p,
                             CP_NVPW_SIZE(ConvertName, request_size)) == 0;
  }

  void dependencies(const MetricEvalRequest& request, std::vector<std::string>& out) const {
    GetRawDependencies p = {};
    p.evaluator = x_evaluator;
    p.requests = &request;
    p.count = 1;
    p.request_size = CP_NVPW_SIZE(MetricEvalRequest, submetric);
    p.request_stride = sizeof request;
    constexpr const char* kCall = "NVPW_MetricsEvaluator_GetMetricRawDependencies";
    x_library.call(kCall, p, CP_NVPW_SIZE(GetRawDependencies, optional_count));
    std::vector<const char*> raw(p.raw_count), optional(p.optional_count);
    p.raw = raw.data();
    p.optional = optional.data();
    x_library.call(kCall, p, CP_NVPW_SIZE(GetRawDependencies, optional_count));
    for (size_t i = 0; i < p.raw_count; ++i)
      if (std::find(out.begin(), out.end(), raw[i]) == out.end()) out.emplace_back(raw[i]);
  }

  void describe(uint8_t type, size_t index, MetricProperties& out) const {
    uint32_t hw_unit = 0;
    const auto ask = [&](const char* function, auto p, size_t size) {
      p.evaluator = x_evaluator;
      p.index = index;
      x_library.call(function, p, size);
      out.description = p.description ? p.description : "";
      hw_unit = static_cast<uint32_t>(p.hw_unit);
    };
    if (type == CUPTI_METRIC_TYPE_COUNTER)
      ask("NVPW_MetricsEvaluator_GetCounterProperties", GetCounterProperties{},
          CP_NVPW_SIZE(GetCounterProperties, hw_unit));
    else if (type == CUPTI_METRIC_TYPE_RATIO)
      ask("NVPW_MetricsEvaluator_GetRatioMetricProperties", GetRatioProperties{},
          CP_NVPW_SIZE(GetRatioProperties, hw_unit));
    else
      ask("NVPW_MetricsEvaluator_GetThroughputMetricProperties", GetThroughputProperties{},
          CP_NVPW_SIZE(GetThroughputProperties, sub_throughput_indices));
    HwUnitToString p = {};
    p.evaluator = x_evaluator;
    p.hw_unit = hw_unit;
    if (x_library.attempt("NVPW_MetricsEvaluator_HwUnitToString", p, CP_NVPW_SIZE(HwUnitToString, name)) == 0)
      out.hw_unit = p.name ? p.name : "";
  }

  // "byte/second", as CUPTI writes it.
  std::string unit_text(const MetricEvalRequest& request) const {
    GetDimUnits p = {};
    p.evaluator = x_evaluator;
    p.request = &request;
    p.request_size = CP_NVPW_SIZE(MetricEvalRequest, submetric);
    p.factor_size = CP_NVPW_SIZE(DimUnitFactor, exponent);
    constexpr const char* kCall = "NVPW_MetricsEvaluator_GetMetricDimUnits";
    if (x_library.attempt(kCall, p, CP_NVPW_SIZE(GetDimUnits, factor_size)) != 0) return {};
    std::vector<DimUnitFactor> factors(p.count);
    p.units = factors.data();
    if (x_library.attempt(kCall, p, CP_NVPW_SIZE(GetDimUnits, factor_size)) != 0) return {};
    std::string over, under;
    for (const DimUnitFactor& f : factors) {
      DimUnitToString name = {};
      name.evaluator = x_evaluator;
      name.unit = f.unit;
      if (x_library.attempt("NVPW_MetricsEvaluator_DimUnitToString", name,
                            CP_NVPW_SIZE(DimUnitToString, plural)) != 0 ||
          !name.singular || name.singular == std::string_view("unitless"))
        continue;
      (f.exponent > 0 ? over : under) += name.singular;
    }
    return under.empty() ? over : over + "/" + under;
  }

  const NvpwLibrary x_library;
  const std::string x_chip;
  const ProfilerType x_type;
  std::vector<uint8_t> x_scratch;  // the evaluator lives in it
  MetricsEvaluator* x_evaluator = nullptr;
};

}  // namespace

std::vector<std::string> nvpw_chips(const Api& api) {
  const NvpwLibrary library(api);
  GetSupportedChipNames p = {};
  library.call("NVPW_GetSupportedChipNames", p, CP_NVPW_SIZE(GetSupportedChipNames, count));
  return {p.names, p.names + p.count};
}

std::unique_ptr<HostBackend> nvpw_host(const Api& api, const std::string& chip, ProfilerType type) {
  const std::vector<std::string> chips = nvpw_chips(api);
  if (std::find(chips.begin(), chips.end(), chip) == chips.end()) return nullptr;
  return std::make_unique<NvpwHost>(api, chip, type);
}

}  // namespace cuptiprof
