// The one kernel filter: what to keep, what to count, what to show. Compiled once, then immutable and free of
// Python, so any thread may use it; the counters of one run are apart (filter_state.h).
//
// Order of the tests (the same for every front end):
//   device -> skip-before-match -> name include/exclude -> regions, NVTX and lines -> context,
//   stream, thread, step, grid, block -> launch IDs (invocation counters) -> skip -> every -> count
// The verdicts on a name and on a set of open ranges do not depend on anything else: a caller keeps them per
// interned name and per interned region path, and then a launch costs a few comparisons of integers. The
// decoder asks for each kernel record, the launch selector in launch callbacks; verdicts are made at the
// first sight of a name or path, since a regular expression can allocate.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "filter/launch_id.h"
#include "filter/line_pattern.h"
#include "filter/module_pattern.h"
#include "filter/name_parts.h"
#include "filter/pattern.h"
#include "filter/ranges.h"

namespace cuptiprof {

enum class FilterMode { kGlobal, kPerGpu, kPerLaunchConfig };

using Dim3 = std::array<int32_t, 3>;

// What the user asked for; every empty list means "any".
struct FilterSpec {
  NameBase base = NameBase::kFunction;
  std::vector<std::string> kernels, exclude;  // glob or regex:
  std::vector<std::string> kernel_names;      // ncu -k: literal or regex:
  std::vector<std::string> nvprof_kernels;    // nvprof --kernels
  std::vector<std::string> kernel_ids;        // ncu --kernel-id
  std::vector<std::string> regions, exclude_regions;
  std::vector<std::string> nvtx_include, nvtx_exclude;
  std::vector<std::string> operators;  // of PyTorch
  std::vector<std::string> lines;      // of the Python program
  std::vector<std::string> modules;    // of PyTorch
  std::vector<uint32_t> devices, contexts, streams, threads;
  std::vector<uint32_t> steps;  // training steps, from 0
  std::optional<Dim3> grid, block;
  int64_t skip = 0;
  std::optional<int64_t> count;
  int64_t every = 1;
  int64_t skip_before_match = 0;
  FilterMode mode = FilterMode::kGlobal;
};

// One launch; views only. Context and stream names are those given through NVTX.
struct LaunchView {
  uint32_t device = 0, context = 0, stream = 0, thread = 0;
  uint32_t step = 0;  // number of the training step + 1; 0: none was marked
  Dim3 grid{}, block{};
  int64_t shared_memory = 0;  // bytes, static + dynamic
  std::string_view context_name, stream_name;
};

// Everything a filter needs to know of a name. Keep one per interned name.
struct NameVerdict {
  bool accepted = true;
  uint64_t ids = 0;                          // bit i: the name part of launch ID i matches
  uint64_t demangled_key = 0, base_key = 0;  // hashes that invocation counters are kept by
};

class KernelFilter {
 public:
  // Throws Error(kFilter) with the position of the fault and a hint.
  explicit KernelFilter(FilterSpec spec);

  [[nodiscard]] NameVerdict name_verdict(const NameParts& name) const noexcept;
  [[nodiscard]] bool matches_name(const NameParts& name) const noexcept {
    return name_verdict(name).accepted;
  }
  // Regions, NVTX ranges and operators: the other verdict to keep (per region path, where there is no NVTX
  // stack).
  [[nodiscard]] bool matches_ranges(const RangeView& ranges) const noexcept;
  // Lines of Python: a third verdict to keep, by stack. Any frame of the stack may match.
  [[nodiscard]] bool matches_lines(std::span<const LineView> stack) const noexcept;
  [[nodiscard]] bool needs_lines() const noexcept { return !x_lines.empty(); }
  // A module of PyTorch by its path, without_ordinal(): a fourth.
  [[nodiscard]] bool matches_module(std::string_view path) const noexcept;
  [[nodiscard]] bool needs_modules() const noexcept { return !x_modules.empty(); }
  [[nodiscard]] bool matches_step(uint32_t step) const noexcept { return listed(x_spec.steps, step - 1); }
  [[nodiscard]] bool matches_device(uint32_t device) const noexcept { return listed(x_spec.devices, device); }

  // Everything but the counters; with is_stateful() false this is the whole filter.
  [[nodiscard]] bool matches_stateless(const LaunchView& launch, const NameVerdict& name,
                                       bool ranges_match) const noexcept {
    return matches_device(launch.device) && matches_launch(launch, name, ranges_match);
  }
  // The same without the device, which comes before skip-before-match.
  [[nodiscard]] bool matches_launch(const LaunchView& launch, const NameVerdict& name,
                                    bool ranges_match) const noexcept {
    return name.accepted && ranges_match && listed(x_spec.contexts, launch.context) &&
           listed(x_spec.streams, launch.stream) && listed(x_spec.threads, launch.thread) &&
           matches_step(launch.step) && (!x_spec.grid || *x_spec.grid == launch.grid) &&
           (!x_spec.block || *x_spec.block == launch.block) &&
           (x_ids.empty() || matching_ids(launch, name) != 0);
  }
  // Launch IDs whose context, stream and name match; the invocation is not looked at.
  [[nodiscard]] uint64_t matching_ids(const LaunchView& launch, const NameVerdict& name) const noexcept;

  // Needs a FilterState: launches must be shown in launch order, each once.
  [[nodiscard]] bool is_stateful() const noexcept { return x_stateful; }
  [[nodiscard]] bool needs_regions() const noexcept {
    return !x_regions.empty() || !x_exclude_regions.empty() || !x_nvtx_include.empty() ||
           !x_nvtx_exclude.empty() || needs_operators();
  }
  [[nodiscard]] bool needs_operators() const noexcept { return !x_operators.empty(); }
  // True when everything is selected: the caller may leave the filter out.
  [[nodiscard]] bool selects_all() const noexcept { return x_selects_all; }

  [[nodiscard]] const FilterSpec& spec() const noexcept { return x_spec; }
  [[nodiscard]] const std::vector<LaunchId>& ids() const noexcept { return x_ids; }
  // One line of text for metadata and messages.
  [[nodiscard]] std::string describe() const;
  // The name patterns as the user wrote them, for "no kernel matched ...".
  [[nodiscard]] std::vector<std::string> name_patterns() const;

  static constexpr size_t kMaxIds = 64;  // a bit each in NameVerdict::ids

 private:
  struct NamePattern {
    Pattern pattern;
    const std::string& (*form)(const NameParts&);  // which form of the name it looks at
  };
  // With the form of the name that the pattern is meant for.
  [[nodiscard]] static NamePattern route(Pattern pattern, NameBase base);
  [[nodiscard]] static bool listed(const std::vector<uint32_t>& list, uint32_t value) noexcept {
    if (list.empty()) return true;
    for (const uint32_t v : list)
      if (v == value) return true;
    return false;
  }

  FilterSpec x_spec;
  std::vector<NamePattern> x_include, x_exclude;
  std::vector<LaunchId> x_ids;
  std::vector<RegionPattern> x_regions, x_exclude_regions, x_operators;
  std::vector<NvtxExpression> x_nvtx_include, x_nvtx_exclude;
  std::vector<LinePattern> x_lines;
  std::vector<ModulePattern> x_modules;
  bool x_stateful = false, x_selects_all = false;
};

FilterMode parse_filter_mode(std::string_view text);
NameBase parse_name_base(std::string_view text);
std::string_view to_string(FilterMode mode) noexcept;
std::string_view to_string(NameBase base) noexcept;

}  // namespace cuptiprof
