#include "filter/open_ranges.h"

#include <algorithm>
#include <utility>

namespace cuptiprof {

OpenRanges::OpenRanges(std::vector<ScopeLabel> path, std::vector<ScopeLabel> beside)
    : x_path(std::move(path)), x_beside(std::move(beside)) {
  for (const ScopeLabel& label : x_path) {
    if (!x_names.empty()) x_text += '/';
    for (const char c : label.name) {
      if (c == '/' || c == '\\') x_text += '\\';
      x_text += c;
    }
    x_names.push_back(label.name);
    if (label.source == ScopeSource::kRegion) x_regions.push_back(label.name);
    add_nvtx(label);
  }
  for (const ScopeLabel& label : x_beside) add_nvtx(label);
  for (const Domain& d : x_domains) x_push_pop.push_back({d.name, d.ranges});
}

void OpenRanges::add_nvtx(const ScopeLabel& label) {
  if (label.source != ScopeSource::kNvtx) return;
  auto found = std::find_if(x_domains.begin(), x_domains.end(),
                            [&](const Domain& d) { return d.name == label.domain; });
  if (found == x_domains.end()) found = x_domains.insert(x_domains.end(), {label.domain, {}});
  found->ranges.push_back(label.name);
}

}  // namespace cuptiprof
