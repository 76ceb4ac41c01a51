// Who answers a MetricHost: CUPTI's host API, or the library under it where CUPTI does not work. Only
// MetricHost calls these, with names it has checked, and one thread at a time.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "counters/plan/metric_host.h"

namespace cuptiprof {

// Each function does what MetricHost's of the same name says.
class HostBackend {
 public:
  virtual ~HostBackend() = default;
  virtual std::vector<std::string> base_metrics(CUpti_MetricType type) const = 0;
  // `name` is known to be a metric of this type.
  virtual std::vector<std::string> sub_metrics(const std::string& name, CUpti_MetricType type) const = 0;
  virtual std::optional<MetricProperties> properties(const std::string& name) const = 0;
  virtual ConfigImage configure(std::span<const std::string> metrics) = 0;
  // `values`: as many as names. What failed may have been written to in part.
  virtual CUptiResult evaluate(std::span<const uint8_t> image, size_t range,
                               std::span<const char* const> names, double* values) const = 0;
};

// Null: no such chip. Throws Error where the chip is known but cannot be planned for.
std::unique_ptr<HostBackend> cupti_host(std::shared_ptr<const Api> api, const std::string& chip,
                                        ProfilerType type, std::span<const uint8_t> availability);
std::unique_ptr<HostBackend> nvpw_host(const Api& api, const std::string& chip, ProfilerType type);

std::vector<std::string> cupti_chips(const Api& api);
std::vector<std::string> nvpw_chips(const Api& api);

}  // namespace cuptiprof
