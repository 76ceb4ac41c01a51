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
  // `start_end`: NVTX ranges of the process, in any order.
  OpenRanges(std::vector<ScopeLabel> path, std::vector<ScopeLabel> beside, std::vector<ScopeLabel> start_end);
  OpenRanges(const OpenRanges&) = delete;
  OpenRanges& operator=(const OpenRanges&) = delete;

  [[nodiscard]] RangeView view() const noexcept {
    return {x_text, x_names, x_regions, x_push_pop, x_started, x_operator_text, x_operators};
  }
  [[nodiscard]] const std::string& path_text() const noexcept { return x_text; }

 private:
  std::vector<ScopeLabel> x_path, x_beside, x_start_end;
  std::string x_text, x_operator_text;
  std::vector<std::string_view> x_names, x_regions, x_operators;
  struct Domain {
    std::string_view name;
    std::vector<std::string_view> ranges;
  };
  using Domains = std::vector<Domain>;
  static void add_nvtx(Domains& to, const ScopeLabel& label);

  Domains x_domains, x_started_domains;
  std::vector<DomainRanges> x_push_pop, x_started;  // of those
};

}  // namespace cuptiprof
