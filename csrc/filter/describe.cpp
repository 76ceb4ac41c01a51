// A filter as text.
#include "base/error.h"
#include "filter/filter_error.h"
#include "filter/kernel_filter.h"

namespace cuptiprof {
namespace {

struct Line {
  std::string text;

  void add(std::string_view part) { text.append(text.empty() ? "" : ", ").append(part); }
  void add(std::string_view key, const std::vector<std::string>& values) {
    if (values.empty()) return;
    std::string part(key);
    for (size_t i = 0; i < values.size(); ++i) part.append(i ? " or " : " ").append(in_quotes(values[i]));
    add(part);
  }
  void add(std::string_view key, const std::vector<uint32_t>& values) {
    if (values.empty()) return;
    std::string part(key);
    for (size_t i = 0; i < values.size(); ++i) part.append(i ? "," : " ").append(std::to_string(values[i]));
    add(part);
  }
  void add(std::string_view key, const std::optional<Dim3>& dims) {
    if (!dims) return;
    add(std::string(key) + " (" + std::to_string((*dims)[0]) + "," + std::to_string((*dims)[1]) + "," +
        std::to_string((*dims)[2]) + ")");
  }
  void add(std::string_view key, int64_t value) { add(std::string(key) + " " + std::to_string(value)); }
};

}  // namespace

std::string KernelFilter::describe() const {
  if (x_selects_all) return "all kernels";
  const FilterSpec& s = x_spec;
  Line line;
  line.add("kernels", s.kernels);
  line.add("kernel name", s.kernel_names);
  line.add("nvprof kernels", s.nvprof_kernels);
  line.add("kernel ID", s.kernel_ids);
  line.add("not kernels", s.exclude);
  if (s.base != NameBase::kFunction) line.add(std::string("name base ").append(to_string(s.base)));
  line.add("in region", s.regions);
  line.add("not in region", s.exclude_regions);
  line.add("NVTX", s.nvtx_include);
  line.add("not NVTX", s.nvtx_exclude);
  line.add("in operator", s.operators);
  line.add("from line", s.lines);
  line.add("in module", s.modules);
  line.add("devices", s.devices);
  line.add("contexts", s.contexts);
  line.add("streams", s.streams);
  line.add("threads", s.threads);
  line.add("steps", s.steps);
  line.add("grid", s.grid);
  line.add("block", s.block);
  if (s.skip_before_match) line.add("skip before match", s.skip_before_match);
  if (s.skip) line.add("skip", s.skip);
  if (s.every != 1) line.add("every", s.every);
  if (s.count) line.add("count", *s.count);
  if (s.mode != FilterMode::kGlobal) line.add(to_string(s.mode));
  return line.text;
}

std::vector<std::string> KernelFilter::name_patterns() const {
  std::vector<std::string> out;
  for (const auto* list : {&x_spec.kernels, &x_spec.kernel_names})
    out.insert(out.end(), list->begin(), list->end());
  for (const LaunchId& id : x_ids)
    if (id.name) out.push_back(id.name->text());
  return out;
}

std::string_view to_string(FilterMode mode) noexcept {
  return mode == FilterMode::kPerGpu            ? "per-gpu"
         : mode == FilterMode::kPerLaunchConfig ? "per-launch-config"
                                                : "global";
}

std::string_view to_string(NameBase base) noexcept {
  return base == NameBase::kMangled ? "mangled" : base == NameBase::kDemangled ? "demangled" : "function";
}

FilterMode parse_filter_mode(std::string_view text) {
  for (const FilterMode mode : {FilterMode::kGlobal, FilterMode::kPerGpu, FilterMode::kPerLaunchConfig})
    if (text == to_string(mode)) return mode;
  throw Error(ErrorKind::kFilter, "unknown filter mode " + in_quotes(text),
              "Use 'global', 'per-gpu' or 'per-launch-config'.");
}

NameBase parse_name_base(std::string_view text) {
  for (const NameBase base : {NameBase::kFunction, NameBase::kDemangled, NameBase::kMangled})
    if (text == to_string(base)) return base;
  throw Error(ErrorKind::kFilter, "unknown name base " + in_quotes(text),
              "Use 'function', 'demangled' or 'mangled'.");
}

}  // namespace cuptiprof
