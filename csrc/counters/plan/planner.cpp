#include "counters/plan/planner.h"

#include <algorithm>

#include "base/error.h"
#include "counters/plan/pass_packing.h"
#include "cupti/call.h"
#include "filter/nearest_names.h"

namespace cuptiprof {
namespace {

constexpr size_t kNamedInErrors = 8;
constexpr size_t kNameBytesInErrors = 128;

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < std::min(names.size(), kNamedInErrors); ++i)
    out += (i ? ", " : "") + names[i].substr(0, kNameBytesInErrors);
  if (names.size() > kNamedInErrors) out += " and " + std::to_string(names.size() - kNamedInErrors) + " more";
  return out;
}

std::vector<std::string> sorted_set(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

// "sm__cycles_active" of "sm__cycles_active.avg.per_second"; dots before the "__" belong to the name.
std::string base_of(const std::string& name) {
  const size_t unit = name.find("__");
  return name.substr(0, name.find('.', unit == std::string::npos ? 0 : unit));
}

void sort_groups(std::vector<PassGroup>& groups) {
  std::sort(groups.begin(), groups.end(),
            [](const PassGroup& a, const PassGroup& b) { return a.metrics < b.metrics; });
}

}  // namespace

Planner::Planner(std::shared_ptr<const Api> api, PlanRequest request)
    : x_api(std::move(api)), x_request(std::move(request)) {}

const MetricHost& Planner::host() {
  if (!x_host) x_host.emplace(x_api, x_request.chip, x_request.type, x_request.availability);
  return *x_host;
}

std::vector<PassGroup> Planner::plan(const Names& metrics) {
  const Names names = sorted_set(metrics);
  if (names.empty()) return {};
  require_known(names);
  return configurations(names);
}

void Planner::require_known(const Names& names) {
  Names unknown, bare;
  for (const std::string& name : names) {
    if (!host().properties(name))
      unknown.push_back(name);
    else if (base_of(name) == name)
      bare.push_back(name);
  }
  const std::string where =
      x_request.chip + (x_request.type == ProfilerType::kSampling ? " cannot sample " : " has no metric ");
  if (!unknown.empty()) {
    const std::string& first = unknown.front();
    std::string hint;
    if (const auto subs = host().sub_metrics(base_of(first)); !subs.empty()) {
      hint = base_of(first) + " takes one of " + listed(subs);
    } else if (x_request.type == ProfilerType::kSampling &&
               MetricHost(x_api, x_request.chip, ProfilerType::kRange).properties(first)) {
      hint = first + " can be collected by kernel or by range, not by sampling";
    } else if (const auto chips = chips_with(x_api, first, x_request.type); !chips.empty()) {
      hint = first + " exists on " + listed(chips);
    } else {
      Names bases;
      for (const auto type :
           {CUPTI_METRIC_TYPE_COUNTER, CUPTI_METRIC_TYPE_RATIO, CUPTI_METRIC_TYPE_THROUGHPUT})
        for (std::string& base : host().base_metrics(type)) bases.push_back(std::move(base));
      hint = "the nearest are " + listed(nearest_names(base_of(first), bases, 3));
    }
    throw Error(ErrorKind::kMetric, where + listed(unknown), hint);
  }
  if (!bare.empty())
    throw Error(ErrorKind::kMetric, listed(bare) + (bare.size() == 1 ? " needs" : " need") + " a roll-up",
                "for example " + bare.front() + host().sub_metrics(bare.front()).front() + "; " +
                    bare.front() + " takes " + listed(host().sub_metrics(bare.front())));
}

ConfigImage Planner::attempt(const Names& names) const {
  return MetricHost(x_api, x_request.chip, x_request.type, x_request.availability).configure(names);
}

// All in one configuration where they can coexist.
std::vector<PassGroup> Planner::configurations(const Names& sorted) {
  ConfigImage whole = attempt(sorted);
  if (whole.rc == CUPTI_SUCCESS) return {{sorted, std::move(whole.image), whole.passes}};
  return split(sorted);
}

std::map<std::string, std::vector<std::string>> Planner::by_unit(const Names& names) {
  std::map<std::string, Names> units;
  for (const std::string& name : names) units[host().properties(name)->hw_unit].push_back(name);
  return units;
}

// Parts of the chip that cannot be collected together, each with what does go with it: whole hardware units
// first, as they are few, and one metric at a time only where a unit does not do.
std::vector<PassGroup> Planner::split(const Names& sorted) {
  std::vector<Names> parts;
  Names impossible;
  for (auto& [unit, names] : by_unit(sorted)) {
    if (attempt(names).rc == CUPTI_SUCCESS) {
      parts.push_back(std::move(names));
      continue;
    }
    for (std::string& name : names) {
      const Names alone{name};
      (attempt(alone).rc == CUPTI_SUCCESS ? parts.emplace_back() : impossible).push_back(std::move(name));
    }
  }
  if (!impossible.empty())
    throw Error(
        ErrorKind::kMetric, x_request.chip + " cannot collect " + listed(impossible),
        x_request.availability.empty()
            ? "leave them out; `cuptiprof metrics NAME --passes` shows what can be collected"
            : "leave them out: this device does not give them (a MIG instance or a virtual GPU has fewer "
              "than its chip)");
  std::vector<std::pair<Names, ConfigImage>> open;
  for (Names& part : parts) {
    bool placed = false;
    for (auto& [names, config] : open) {
      Names both = names;
      both.insert(both.end(), part.begin(), part.end());
      std::sort(both.begin(), both.end());
      ConfigImage together = attempt(both);
      if (together.rc != CUPTI_SUCCESS) continue;
      names = std::move(both);
      config = std::move(together);
      placed = true;
      break;
    }
    if (!placed) {
      ConfigImage config = attempt(part);
      check(*x_api, config.rc, "cuptiProfilerHostConfigAddMetrics", listed(part));
      open.emplace_back(std::move(part), std::move(config));
    }
  }
  std::vector<PassGroup> out;
  for (auto& [names, config] : open)
    out.push_back({std::move(names), std::move(config.image), config.passes});
  sort_groups(out);
  return out;
}

std::vector<PassGroup> Planner::one_pass_groups(const Names& metrics) {
  const Names names = sorted_set(metrics);
  if (names.empty()) return {};

  std::vector<PassGroup> groups = plan(names);
  if (std::any_of(groups.begin(), groups.end(), [](const PassGroup& g) { return g.passes > 1; })) {
    require_one_pass_each(names);
    const auto fit = [&](Names some) -> std::optional<PassGroup> {
      std::sort(some.begin(), some.end());
      ConfigImage config = attempt(some);
      if (config.rc != CUPTI_SUCCESS || config.passes != 1) return std::nullopt;
      return PassGroup{std::move(some), std::move(config.image), 1};
    };
    // In order of names, metrics that share counters are neighbours.
    std::vector<Names> units;
    for (auto& [unit, members] : by_unit(names)) units.push_back(std::move(members));
    groups = pack_one_pass(units, fit);
    sort_groups(groups);
  }
  return groups;
}

void Planner::require_one_pass_each(const Names& names) const {
  Names several;
  for (const std::string& name : names)
    if (attempt({name}).passes > 1) several.push_back(name);
  if (several.empty()) return;
  const bool one = several.size() == 1;
  throw Error(ErrorKind::kMetric,
              listed(several) + (one ? " needs" : " need") + " several passes on " + x_request.chip +
                  (one ? " by itself" : " even alone"),
              x_request.type == ProfilerType::kSampling
                  ? "leave out what needs several, ask for its parts, or collect it by kernel or by range"
                  : "leave out what needs several, ask for its parts, or use strategy=\"replay\"");
}

std::vector<std::string> chips_with(const std::shared_ptr<const Api>& api, const std::string& metric,
                                    ProfilerType type) {
  std::vector<std::string> out;
  for (const std::string& chip : metric_chips(*api)) try {
      if (MetricHost(api, chip, type).properties(metric)) out.push_back(chip);
    } catch (const Error&) {  // known by name, but not to this profiler
    }
  return out;
}

}  // namespace cuptiprof
