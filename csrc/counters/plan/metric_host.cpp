#include "counters/plan/metric_host.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "counters/plan/host_backend.h"
#include "cupti/call.h"
#include "filter/nearest_names.h"

namespace cuptiprof {
namespace {

constexpr size_t kLongestName = 512;  // the longest of CUDA 13.0 has some 140 bytes
constexpr size_t kShownChip = 64;     // bytes of a chip's name in an error

// NVIDIA's code gets only what could be a name: text from files and command lines reaches this far.
bool could_be_name(const std::string& name) {
  return !name.empty() && name.size() <= kLongestName && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
}

Error unknown_chip(const Api& api, const std::string& chip) {
  const std::vector<std::string> chips = metric_chips(api);
  std::string upper = chip;
  for (char& c : upper)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  std::string hint;
  if (std::find(chips.begin(), chips.end(), upper) != chips.end()) {
    hint = "did you mean \"" + upper + "\"? Chip names are exact; ";
  } else if (const auto near = nearest_names(upper.substr(0, kShownChip), chips, 3); !near.empty()) {
    hint = "the nearest are ";
    for (size_t i = 0; i < near.size(); ++i) hint += (i ? ", " : "") + near[i];
    hint += "; ";
  }
  hint += "known are";
  for (const std::string& c : chips) hint += " " + c;
  const std::string release = cuda_version(api.version);
  return Error(ErrorKind::kMetric,
               (release.empty() ? api.path : "CUPTI of CUDA " + release) + " knows no chip \"" +
                   chip.substr(0, kShownChip) + "\"",
               hint);
}

}  // namespace

std::vector<std::string> metric_chips(const Api& api) {
  return api.planning_only ? nvpw_chips(api) : cupti_chips(api);
}

MetricHost::MetricHost(std::shared_ptr<const Api> api, std::string chip, ProfilerType type,
                       std::span<const uint8_t> availability) {
  if (could_be_name(chip))
    x_backend = api->planning_only ? nvpw_host(*api, chip, type) : cupti_host(api, chip, type, availability);
  if (!x_backend) throw unknown_chip(*api, chip);
}

MetricHost::~MetricHost() = default;

std::vector<std::string> MetricHost::base_metrics(CUpti_MetricType type) const {
  return x_backend->base_metrics(type);
}

std::vector<std::string> MetricHost::sub_metrics(const std::string& name) const {
  const auto known = properties(name);
  if (!known) return {};
  return x_backend->sub_metrics(name, known->type);
}

std::optional<MetricProperties> MetricHost::properties(const std::string& name) const {
  if (!could_be_name(name)) return std::nullopt;
  return x_backend->properties(name);
}

ConfigImage MetricHost::configure(std::span<const std::string> metrics) && {
  return x_backend->configure(metrics);
}

void MetricHost::evaluate(std::span<const uint8_t> image, size_t range, std::span<const char* const> names,
                          std::span<double> values) const {
  if (values.size() < names.size()) throw Error(ErrorKind::kMetric, "fewer places for values than names");
  if (names.empty()) return;
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  std::fill(values.begin(), values.end(), kNaN);
  const CUptiResult all = x_backend->evaluate(image, range, names, values.data());
  if (all == CUPTI_SUCCESS) return;
  // One that the image lacks fails the whole call: the others are had one by one.
  size_t failed = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    if (x_backend->evaluate(image, range, names.subspan(i, 1), &values[i]) == CUPTI_SUCCESS) continue;
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
