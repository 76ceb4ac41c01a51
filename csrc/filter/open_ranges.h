// A RangeView of open scopes, with what it looks at.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "filter/ranges.h"
#include "threads/scope_label.h"

namespace cuptiprof {

class OpenRanges {
 public:
  // Outermost first: `path` is what kernels.region names, `beside` what is known only at launches.
  OpenRanges(std::vector<ScopeLabel> path, std::vector<ScopeLabel> beside);
  OpenRanges(const OpenRanges&) = delete;
  OpenRanges& operator=(const OpenRanges&) = delete;

  [[nodiscard]] RangeView view() const noexcept { return {x_text, x_names, x_regions, x_push_pop, {}}; }
  [[nodiscard]] const std::string& path_text() const noexcept { return x_text; }

 private:
  void add_nvtx(const ScopeLabel& label);

  std::vector<ScopeLabel> x_path, x_beside;
  std::string x_text;
  std::vector<std::string_view> x_names, x_regions;
  struct Domain {
    std::string_view name;
    std::vector<std::string_view> ranges;
  };
  std::vector<Domain> x_domains;
  std::vector<DomainRanges> x_push_pop;  // of those
};

}  // namespace cuptiprof
