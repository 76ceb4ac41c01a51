#include "filter/kernel_filter.h"

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "filter/filter_error.h"

namespace cuptiprof {
namespace {

[[noreturn]] void fail(std::string message, std::string hint) {
  throw Error(ErrorKind::kFilter, std::move(message), std::move(hint));
}

void check_count(std::string_view what, int64_t value, int64_t smallest) {
  if (value < smallest)
    fail(std::string(what) + "=" + std::to_string(value) + " is too small",
         "It must be at least " + std::to_string(smallest) + ".");
}

template <class T>
std::vector<T> compile(const std::vector<std::string>& texts, std::string_view what) {
  std::vector<T> out;
  for (const auto& text : texts) {
    if constexpr (std::is_constructible_v<T, std::string_view, std::string_view>)
      out.emplace_back(text, what);
    else
      out.emplace_back(std::string_view(text));
  }
  return out;
}

bool contains_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view p) { return text.find(p) != std::string_view::npos; });
}

const std::string& function_of(const NameParts& n) { return n.function; }
const std::string& qualified_of(const NameParts& n) { return n.qualified; }
const std::string& demangled_of(const NameParts& n) { return n.demangled; }
const std::string& mangled_of(const NameParts& n) { return n.mangled; }

}  // namespace

// A pattern that could never match a bare function name is meant for a longer form of it.
KernelFilter::NamePattern KernelFilter::route(Pattern pattern, NameBase base) {
  if (base == NameBase::kMangled) return {std::move(pattern), &mangled_of};
  if (base == NameBase::kDemangled) return {std::move(pattern), &demangled_of};
  const std::string_view text = pattern.text();
  if (pattern.is_regex()) {
    const bool longer = contains_any(text.substr(kRegexPrefix.size()), {"::", "<", " "});
    return {std::move(pattern), longer ? &demangled_of : &function_of};
  }
  const bool demangled = contains_any(text, {"(", "<", " "});
  const bool qualified = contains_any(text, {"::"});
  return {std::move(pattern), demangled ? &demangled_of : qualified ? &qualified_of : &function_of};
}

KernelFilter::KernelFilter(FilterSpec spec) : x_spec(std::move(spec)) {
  check_count("skip", x_spec.skip, 0);
  check_count("skip_before_match", x_spec.skip_before_match, 0);
  check_count("every", x_spec.every, 1);
  if (x_spec.count) check_count("count", *x_spec.count, 0);
  for (const auto& [what, dims] : {std::pair("grid", x_spec.grid), std::pair("block", x_spec.block)})
    if (dims)
      for (const int32_t d : *dims) check_count(what, d, 1);

  for (auto* list : {&x_spec.devices, &x_spec.contexts, &x_spec.streams, &x_spec.threads, &x_spec.steps}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }

  for (const auto& text : x_spec.kernels)
    x_include.push_back(route(Pattern::parse(text, "kernel pattern"), x_spec.base));
  for (const auto& text : x_spec.exclude)
    x_exclude.push_back(route(Pattern::parse(text, "exclude pattern"), x_spec.base));
  for (const auto& text : x_spec.kernel_names) {
    const auto form = x_spec.base == NameBase::kFunction    ? &function_of
                      : x_spec.base == NameBase::kDemangled ? &demangled_of
                                                            : &mangled_of;
    x_include.push_back({Pattern::parse_literal(text, "--kernel-name"), form});
  }
  for (const auto& text : x_spec.nvprof_kernels) x_ids.push_back(LaunchId::from_nvprof(text));
  for (const auto& text : x_spec.kernel_ids) x_ids.push_back(LaunchId::from_ncu(text));
  if (x_ids.size() > kMaxIds)
    fail("more than " + std::to_string(kMaxIds) + " launch IDs in one filter",
         "Use a regular expression, or several runs.");
  x_regions = compile<RegionPattern>(x_spec.regions, "region pattern");
  x_exclude_regions = compile<RegionPattern>(x_spec.exclude_regions, "exclude_regions pattern");
  x_nvtx_include = compile<NvtxExpression>(x_spec.nvtx_include, {});
  x_nvtx_exclude = compile<NvtxExpression>(x_spec.nvtx_exclude, {});
  x_operators = compile<RegionPattern>(x_spec.operators, "operator pattern");
  x_lines = compile<LinePattern>(x_spec.lines, "line pattern");
  x_modules = compile<ModulePattern>(x_spec.modules, "module pattern");

  const bool counts_invocations =
      std::any_of(x_ids.begin(), x_ids.end(), [](const LaunchId& id) { return !id.invocation.any(); });
  x_stateful = counts_invocations || x_spec.skip != 0 || x_spec.count || x_spec.every != 1 ||
               x_spec.skip_before_match != 0;
  x_selects_all = !x_stateful && !needs_regions() && !needs_lines() && !needs_modules() &&
                  x_include.empty() && x_exclude.empty() && x_ids.empty() && x_spec.devices.empty() &&
                  x_spec.contexts.empty() && x_spec.streams.empty() && x_spec.threads.empty() &&
                  x_spec.steps.empty() && !x_spec.grid && !x_spec.block;
}

NameVerdict KernelFilter::name_verdict(const NameParts& name) const noexcept {
  const auto matches = [&](const NamePattern& p) { return p.pattern.matches(p.form(name)); };
  NameVerdict verdict;
  verdict.accepted = (x_include.empty() || std::any_of(x_include.begin(), x_include.end(), matches)) &&
                     std::none_of(x_exclude.begin(), x_exclude.end(), matches);
  if (x_ids.empty() || !verdict.accepted) return verdict;
  for (size_t i = 0; i < x_ids.size(); ++i) {
    const LaunchId& id = x_ids[i];
    const std::string& form = id.name_on_base ? name.at(x_spec.base) : name.demangled;
    if (!id.name || id.name->matches(form)) verdict.ids |= uint64_t{1} << i;
  }
  verdict.accepted = verdict.ids != 0;
  verdict.demangled_key = std::hash<std::string_view>{}(name.demangled);
  verdict.base_key = std::hash<std::string_view>{}(name.at(x_spec.base));
  return verdict;
}

bool KernelFilter::matches_ranges(const RangeView& ranges) const noexcept {
  const auto inside = [](const std::vector<RegionPattern>& patterns, std::string_view path, NameSpan names) {
    return std::any_of(patterns.begin(), patterns.end(),
                       [&](const RegionPattern& p) { return p.matches(path, names); });
  };
  const auto any = [&](const std::vector<NvtxExpression>& expressions) {
    return std::any_of(expressions.begin(), expressions.end(),
                       [&](const NvtxExpression& e) { return e.matches(ranges); });
  };
  return (x_regions.empty() || inside(x_regions, ranges.region_path, ranges.path)) &&
         (x_operators.empty() || inside(x_operators, ranges.operator_path, ranges.operators)) &&
         (x_nvtx_include.empty() || any(x_nvtx_include)) &&
         !inside(x_exclude_regions, ranges.region_path, ranges.path) && !any(x_nvtx_exclude);
}

bool KernelFilter::matches_lines(std::span<const LineView> stack) const noexcept {
  return x_lines.empty() || std::any_of(stack.begin(), stack.end(), [&](const LineView& at) {
           return std::any_of(x_lines.begin(), x_lines.end(),
                              [&](const LinePattern& p) { return p.matches(at); });
         });
}

bool KernelFilter::matches_module(std::string_view path) const noexcept {
  return x_modules.empty() || std::any_of(x_modules.begin(), x_modules.end(),
                                          [&](const ModulePattern& p) { return p.matches(path); });
}

uint64_t KernelFilter::matching_ids(const LaunchView& launch, const NameVerdict& name) const noexcept {
  uint64_t ids = 0;
  for (size_t i = 0; i < x_ids.size(); ++i) {
    const uint64_t bit = uint64_t{1} << i;
    if ((name.ids & bit) && x_ids[i].context.matches(launch.context, launch.context_name) &&
        x_ids[i].stream.matches(launch.stream, launch.stream_name))
      ids |= bit;
  }
  return ids;
}

}  // namespace cuptiprof
