#include "filter/open_ranges.h"

#include <algorithm>
#include <utility>

namespace cuptiprof {

OpenRanges::OpenRanges(std::vector<ScopeLabel> path, std::vector<ScopeLabel> beside,
                       std::vector<ScopeLabel> start_end)
    : x_path(std::move(path)), x_beside(std::move(beside)), x_start_end(std::move(start_end)) {
  for (const ScopeLabel& label : x_path) {
    if (!x_names.empty()) x_text += '/';
    for (const char c : label.name) {
      if (c == '/' || c == '\\') x_text += '\\';
      x_text += c;
    }
    x_names.push_back(label.name);
    if (label.source == ScopeSource::kRegion) x_regions.push_back(label.name);
    add_nvtx(x_domains, label);
  }
  for (const ScopeLabel& label : x_beside) add_nvtx(x_domains, label);
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
