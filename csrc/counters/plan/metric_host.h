// What CUPTI knows of a chip's metrics, and the value of a metric in a counter-data image. Needs no GPU.
//
// Planning is asked of the user's thread (Planner), values also of the strategies' own threads, each with a
// MetricHost of its own. Not in a callback: it loads libraries, allocates and throws.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cupti/api.h"

namespace cuptiprof {

// What is to collect: the range profiler (of kernels or regions) or PM sampling. They have different metrics.
enum class ProfilerType { kRange, kSampling };

struct MetricProperties {
  std::string description;
  std::string hw_unit;   // part of the chip: "sm", "dram"
  std::string dim_unit;  // what the value counts: "byte/second"
  CUpti_MetricType type;
};

// What one call of ConfigAddMetrics gave.
struct ConfigImage {
  CUptiResult rc = CUPTI_SUCCESS;  // of the call; the rest is empty when it failed
  std::vector<uint8_t> image;
  uint32_t passes = 0;
};

// Exact names of the chips that the library knows. Throws Error.
std::vector<std::string> metric_chips(const Api& api);

class HostBackend;

// What CUPTI calls a host object. One thread at a time.
class MetricHost {
 public:
  // `availability`: counter availability of the device, where there is one: what is not available is then no
  // metric. Throws Error: kMetric for an unknown chip, kDevice where the library cannot plan.
  MetricHost(std::shared_ptr<const Api> api, std::string chip, ProfilerType type,
             std::span<const uint8_t> availability = {});
  ~MetricHost();
  MetricHost(const MetricHost&) = delete;
  MetricHost& operator=(const MetricHost&) = delete;

  // Names without a roll-up.
  std::vector<std::string> base_metrics(CUpti_MetricType type) const;
  // Suffixes (".avg", ".sum.per_second", ...) that `name`, with or without one, can have; empty: no such
  // metric.
  std::vector<std::string> sub_metrics(const std::string& name) const;
  // nullopt: no such metric on this chip, or none that this profiler type can collect.
  std::optional<MetricProperties> properties(const std::string& name) const;

  // Configuration that collects these metrics together. A host object takes part in one configuration only,
  // and a failed one leaves it unusable, so this is the last call on it.
  ConfigImage configure(std::span<const std::string> metrics) &&;

  // values[i] of names[i] in range `range` of a counter-data image; a value the image lacks is NaN. The image
  // must come from CUPTI: the library does not check it, and a damaged one can crash it. Throws Error when
  // nothing can be had, and when `values` is shorter than `names`.
  void evaluate(std::span<const uint8_t> image, size_t range, std::span<const char* const> names,
                std::span<double> values) const;

 private:
  std::unique_ptr<HostBackend> x_backend;
};

}  // namespace cuptiprof
