// Metrics -> configuration images and passes, by CUPTI's own scheduler. Needs no GPU.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "counters/plan/metric_host.h"
#include "counters/plan/pass_group.h"

namespace cuptiprof {

struct PlanRequest {
  std::string chip;
  ProfilerType type = ProfilerType::kRange;
  std::vector<uint8_t> availability;  // counter availability of the device; empty: all the chip has
};

// One thread at a time: the bindings hold a mutex around it. Loads nothing before the first question. Nothing
// is remembered here: plans are in cuptiprof/device/plan_cache.py. Planning can take seconds.
class Planner {
 public:
  Planner(std::shared_ptr<const Api> api, PlanRequest request);

  // The chip's metrics; the first call loads nvperf. Throws Error (kMetric) for an unknown chip.
  const MetricHost& host();

  // Configurations that cannot coexist are split (PCIe and NVLink apart from SM and DRAM in range mode); all
  // metrics of one are added in one call. Doubles count once; the metrics of a group are sorted, and so are
  // the groups. Throws Error (kMetric) for names that the chip lacks, that need a roll-up, or that cannot be
  // collected.
  std::vector<PassGroup> plan(const std::vector<std::string>& metrics);

  // The fewest one-pass groups that we find by really planning them (pass_packing.h). Throws Error (kMetric)
  // that names those which need several passes on their own, and as plan() does.
  std::vector<PassGroup> one_pass_groups(const std::vector<std::string>& metrics);

 private:
  using Names = std::vector<std::string>;

  // Throws Error (kMetric) for names that the chip lacks, or that need a roll-up.
  void require_known(const Names& names);
  // One configuration of all of them; `rc` tells when there is none.
  ConfigImage attempt(const Names& names) const;
  std::vector<PassGroup> configurations(const Names& sorted);
  std::vector<PassGroup> split(const Names& sorted);
  std::map<std::string, Names> by_unit(const Names& names);  // hardware unit -> metrics
  // Throws Error (kMetric) that names those which take several passes alone.
  void require_one_pass_each(const Names& names) const;

  const std::shared_ptr<const Api> x_api;
  const PlanRequest x_request;
  std::optional<MetricHost> x_host;  // answers questions only; each configuration takes a new one
};

// Chips that have the metric, of those the library knows, for the error message about one that lacks it.
std::vector<std::string> chips_with(const std::shared_ptr<const Api>& api, const std::string& metric,
                                    ProfilerType type);

}  // namespace cuptiprof
