#include "filter/open_ranges.h"

#include <algorithm>
#include <utility>

namespace cuptiprof {
namespace {

void append_name(std::string& path, const std::string& name, bool is_first) {
  if (!is_first) path += '/';
  for (const char c : name) {
    if (c == '/' || c == '\\') path += '\\';
    path += c;
  }
}

}  // namespace

OpenRanges::OpenRanges(std::vector<ScopeLabel> path, std::vector<ScopeLabel> beside,
                       std::vector<ScopeLabel> start_end)
    : x_path(std::move(path)), x_beside(std::move(beside)), x_start_end(std::move(start_end)) {
  for (const ScopeLabel& label : x_path) {
    append_name(x_text, label.name, x_names.empty());
    x_names.push_back(label.name);
    if (label.source == ScopeSource::kRegion) x_regions.push_back(label.name);
    add_nvtx(x_domains, label);
  }
  for (const ScopeLabel& label : x_beside) {
    add_nvtx(x_domains, label);
    if (label.source != ScopeSource::kOperator) continue;
    append_name(x_operator_text, label.name, x_operators.empty());
    x_operators.push_back(label.name);
  }
  for (const ScopeLabel& label : x_start_end) add_nvtx(x_started_domains, label);
  for (const Domain& d : x_domains) x_push_pop.push_back({d.name, d.ranges});
  for (const Domain& d : x_started_domains) x_started.push_back({d.name, d.ranges});
}

void OpenRanges::add_nvtx(Domains& to, const ScopeLabel& label) {
  if (label.source != ScopeSource::kNvtx) return;
  auto found = std::find_if(to.begin(), to.end(), [&](const Domain& d) { return d.name == label.domain; });
  if (found == to.end()) found = to.insert(to.end(), {label.domain, {}});
  found->ranges.push_back(label.name);
}

}  // namespace cuptiprof
