// The part of libnvperf_host's C interface that plans metrics. NVIDIA documents it in nvperf_host.h and
// nvperf_cuda_host.h, which the wheels of CUDA 13.0, ours to build with, lack; the three NVPW_Device_*, which
// plan for PM sampling, are those of the Nsight Perf SDK. All structures begin with their own size, and the
// layouts are frozen: tests/offline/test_nvpw.py compares what comes out with CUPTI's host API.
#pragma once
#include <cstddef>
#include <cstdint>

namespace cuptiprof::nvpw {

using Status = int;  // NVPA_Status; 0: success
struct RawMetricsConfig;
struct MetricsEvaluator;

constexpr int kActivityProfiler = 1;         // NVPA_ACTIVITY_KIND_PROFILER
constexpr int kActivityRealtimeSampled = 2;  // NVPA_ACTIVITY_KIND_REALTIME_SAMPLED

// Every structure: its size up to its last member, a null pointer, then these.
#define CP_NVPW_HEAD      \
  size_t struct_size = 0; \
  void* priv = nullptr;

struct InitializeHost {
  CP_NVPW_HEAD
};
struct GetSupportedChipNames {
  CP_NVPW_HEAD
  const char* const* names;  // out
  size_t count;              // out
};

struct RawMetricRequest {
  CP_NVPW_HEAD
  const char* name;
  uint8_t isolated;
  uint8_t keep_instances;
};
struct CudaRawMetricsConfigCreate {
  CP_NVPW_HEAD
  int activity_kind;
  const char* chip;
  const uint8_t* availability;
  RawMetricsConfig* config;  // out
};
struct DeviceRawMetricsConfigCreate {
  CP_NVPW_HEAD
  int activity_kind;
  const char* chip;
  RawMetricsConfig* config;  // out
};
struct RawMetricsConfigDestroy {
  CP_NVPW_HEAD
  RawMetricsConfig* config;
};
struct BeginPassGroup {
  CP_NVPW_HEAD
  RawMetricsConfig* config;
  size_t max_passes;  // 0: any number
};
struct EndPassGroup {
  CP_NVPW_HEAD
  RawMetricsConfig* config;
};
struct AddMetrics {
  CP_NVPW_HEAD
  RawMetricsConfig* config;
  const RawMetricRequest* requests;
  size_t count;
};
struct GenerateConfigImage {
  CP_NVPW_HEAD
  RawMetricsConfig* config;
  uint8_t merge_pass_groups;
};
struct GetConfigImage {
  CP_NVPW_HEAD
  const RawMetricsConfig* config;
  size_t allocated;
  uint8_t* buffer;
  size_t copied;  // out
};
struct GetNumPasses {
  CP_NVPW_HEAD
  const RawMetricsConfig* config;
  size_t passes;  // out
};

struct CudaScratchBufferSize {
  CP_NVPW_HEAD
  const char* chip;
  const uint8_t* availability;
  size_t size;  // out
};
struct CudaEvaluatorInitialize {
  CP_NVPW_HEAD
  uint8_t* scratch;
  size_t scratch_size;
  const char* chip;
  const uint8_t* availability;
  const uint8_t* counter_data;
  size_t counter_data_size;
  MetricsEvaluator* evaluator;  // out
};
struct DeviceScratchBufferSize {
  CP_NVPW_HEAD
  const char* chip;
  size_t size;  // out
};
struct DeviceEvaluatorInitialize {
  CP_NVPW_HEAD
  uint8_t* scratch;
  size_t scratch_size;
  const char* chip;
  const uint8_t* counter_data;
  size_t counter_data_size;
  MetricsEvaluator* evaluator;  // out
};
struct EvaluatorDestroy {
  CP_NVPW_HEAD
  MetricsEvaluator* evaluator;
};
struct MetricEvalRequest {
  size_t index;
  uint8_t type;    // as CUpti_MetricType
  uint8_t rollup;  // order of kRollups
  uint16_t submetric;
};
struct GetMetricNames {
  CP_NVPW_HEAD
  MetricsEvaluator* evaluator;
  uint8_t type;
  const char* names;      // out: one after the other
  const size_t* offsets;  // out: where each begins
  size_t count;           // out
};
struct GetMetricTypeAndIndex {
  CP_NVPW_HEAD
  MetricsEvaluator* evaluator;
  const char* name;
  uint8_t type;  // out
  size_t index;  // out
};
struct ConvertName {
  CP_NVPW_HEAD
  MetricsEvaluator* evaluator;
  const char* name;
  MetricEvalRequest* request;
  size_t request_size;
};
struct GetCounterProperties {
  CP_NVPW_HEAD
  MetricsEvaluator* evaluator;
  size_t index;
  const char* description;  // out
  uint32_t hw_unit;         // out
};
struct GetRatioProperties {
  CP_NVPW_HEAD
  MetricsEvaluator* evaluator;
  size_t index;
  const char* description;  // out
  uint64_t hw_unit;         // out
};
struct GetThroughputProperties {
  CP_NVPW_HEAD
  MetricsEvaluator* evaluator;
  size_t index;
  const char* description;  // out
  uint32_t hw_unit;         // out
  size_t counters;
  const size_t* counter_indices;
  size_t sub_throughputs;
  const size_t* sub_throughput_indices;
};
struct GetSupportedSubmetrics {
  CP_NVPW_HEAD
  MetricsEvaluator* evaluator;
  uint8_t type;
  const uint16_t* submetrics;  // out
  size_t count;                // out
};
struct GetRawDependencies {
  CP_NVPW_HEAD
  MetricsEvaluator* evaluator;
  const MetricEvalRequest* requests;
  size_t count;
  size_t request_size;
  size_t request_stride;
  const char** raw;
  size_t raw_count;  // in: places, out: number
  const char** optional;
  size_t optional_count;
};
struct HwUnitToString {
  CP_NVPW_HEAD
  MetricsEvaluator* evaluator;
  uint32_t hw_unit;
  const char* name;  // out
};
struct DimUnitFactor {
  uint32_t unit;
  int8_t exponent;
};
struct GetDimUnits {
  CP_NVPW_HEAD
  MetricsEvaluator* evaluator;
  const MetricEvalRequest* request;
  size_t request_size;
  DimUnitFactor* units;
  size_t count;  // in: places, out: number
  size_t factor_size;
};
struct DimUnitToString {
  CP_NVPW_HEAD
  MetricsEvaluator* evaluator;
  uint32_t unit;
  const char* singular;  // out
  const char* plural;    // out
};
#undef CP_NVPW_HEAD

// Size of a structure up to and with its last member, as the library wants it: without padding at the end.
#define CP_NVPW_SIZE(type, last) (offsetof(type, last) + sizeof(type::last))

}  // namespace cuptiprof::nvpw
