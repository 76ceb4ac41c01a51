#include "filter/range_texts.h"

#include <string>
#include <utility>

#include "filter/ranges.h"

namespace cuptiprof {

std::vector<ScopeLabel> split_ranges(std::string_view text, char separator) {
  std::vector<ScopeLabel> out;
  if (text.empty()) return out;
  out.push_back({ScopeSource::kNvtx, {}, {}});
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    ScopeLabel& label = out.back();
    if (c == '\\' && i + 1 < text.size())
      label.name += text[++i];
    else if (c == separator)
      out.push_back({ScopeSource::kNvtx, {}, {}});
    else if (c == '@')
      label.domain = std::exchange(label.name, {});
    else
      label.name += c;
  }
  return out;
}

std::vector<ScopeLabel> label_path(std::string_view path, std::vector<ScopeLabel>& nvtx) {
  std::vector<ScopeLabel> out;
  size_t taken = 0;
  for (std::string& name : split_region_path(path)) {
    if (taken < nvtx.size() && nvtx[taken].name == name)
      out.push_back(nvtx[taken++]);
    else
      out.push_back({ScopeSource::kRegion, {}, std::move(name)});
  }
  if (taken == nvtx.size()) {
    nvtx.clear();
    return out;
  }
  // Of the level "launch", they are beside the path.
  for (ScopeLabel& label : out) label = {ScopeSource::kRegion, {}, std::move(label.name)};
  return out;
}

}  // namespace cuptiprof
