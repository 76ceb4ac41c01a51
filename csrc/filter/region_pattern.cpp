#include <algorithm>

#include "filter/ranges.h"

namespace cuptiprof {
namespace {

// Calls f(end of the component) for every component of the path, outermost first, until f returns true.
template <class F>
bool any_component_end(std::string_view path, F f) noexcept {
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i] == '\\' && i + 1 < path.size() && (path[i + 1] == '/' || path[i + 1] == '\\'))
      ++i;
    else if (path[i] == '/' && f(i))
      return true;
  }
  return f(path.size());
}

}  // namespace

std::vector<std::string> split_region_path(std::string_view path) {
  std::vector<std::string> names;
  if (path.empty()) return names;
  size_t begin = 0;
  any_component_end(path, [&](size_t end) {
    std::string name;
    for (size_t i = begin; i < end; ++i) {
      if (path[i] == '\\' && i + 1 < end && (path[i + 1] == '/' || path[i + 1] == '\\')) ++i;
      name += path[i];
    }
    names.push_back(std::move(name));
    begin = end + 1;
    return false;
  });
  return names;
}

RegionPattern::RegionPattern(std::string_view text, std::string_view what)
    : x_pattern(Pattern::parse(text, what)), x_on_path(text.find('/') != std::string_view::npos) {}

bool RegionPattern::matches(std::string_view path, NameSpan names) const noexcept {
  if (path.empty()) return false;
  if (x_pattern.is_regex()) return x_pattern.matches(path);
  if (!x_on_path)
    return std::any_of(names.begin(), names.end(),
                       [&](std::string_view name) { return x_pattern.matches(name); });
  return any_component_end(path, [&](size_t end) { return x_pattern.matches(path.substr(0, end)); });
}

}  // namespace cuptiprof
