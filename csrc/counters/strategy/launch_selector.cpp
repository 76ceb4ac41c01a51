#include "counters/strategy/launch_selector.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "filter/kernel_filter.h"
#include "filter/open_ranges.h"
#include "filter/stack_lines.h"
#include "threads/module_table.h"
#include "threads/open_start_end.h"
#include "threads/thread_slots.h"

namespace cuptiprof {
namespace {

constexpr std::string_view kCommunicating[] = {
    "nccl",      "nvshmem",  "msccl",      "cross_device_reduce", "all_reduce",    "allreduce", "all_gather",
    "allgather", "alltoall", "all_to_all", "reduce_scatter",      "reducescatter", "multimem",  "symm_mem"};

// Path of a module of g_module_table, without an ordinal; 0: none.
std::string module_path(uint32_t module) {
  if (module == 0) return {};
  const ModuleName name = g_module_table.name(module);
  return std::string(name.root_class) + (name.path.empty() ? "" : ".") + std::string(name.path);
}

}  // namespace

bool communicates(std::string_view name) noexcept {
  auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  return std::any_of(std::begin(kCommunicating), std::end(kCommunicating), [&](std::string_view word) {
    return std::search(name.begin(), name.end(), word.begin(), word.end(), same) != name.end();
  });
}

LaunchSelector::LaunchSelector(std::shared_ptr<const Api> api, SelectorOptions options)
    : x_api(std::move(api)), x_options(std::move(options)) {
  if (x_options.filter && x_options.filter->is_stateful())
    x_state = std::make_unique<FilterState>(*x_options.filter);
}

// Under the lock. The first sight of a name demangles it and asks every pattern; nothing does so again.
const LaunchSelector::Name* LaunchSelector::name_of(const char* symbol) noexcept try {
  const uint32_t text = x_strings.intern(symbol ? symbol : "");
  const auto [found, is_new] = x_names.try_emplace(text);
  if (is_new) {
    const NameParts parts{std::string_view(symbol ? symbol : "")};
    Name& n = found->second;
    n.text = text;
    if (x_options.filter) n.verdict = x_options.filter->name_verdict(parts);
    if (n.verdict.accepted && !x_options.communicating && communicates(parts.function)) {
      n.verdict.accepted = false;
      x_left_out.fetch_add(1);
    }
    x_judged.fetch_add(1);
  }
  return &found->second;
} catch (...) {
  return nullptr;  // no memory: the launch is not counted
}

bool LaunchSelector::wants(const char* symbol) noexcept {
  if (x_done.load(std::memory_order_relaxed)) return false;
  // Launches that skip_before_match counts must be shown whatever their name.
  const bool all = x_options.filter && x_options.filter->spec().skip_before_match != 0;
  const uint32_t epoch = g_launch_gate.epoch();
  const std::lock_guard lock(x_mutex);
  const Name* name = name_of(symbol);
  const bool wanted = name && (name->verdict.accepted || all);
  if (symbol && name)
    g_launch_gate.names.put(reinterpret_cast<uint64_t>(symbol), epoch,
                            wanted ? LaunchGate::kWanted : LaunchGate::kRefused);
  return wanted;
}

bool LaunchSelector::selects_path(std::span<const uint32_t> regions, std::span<const uint32_t> scopes,
                                  uint32_t* path) noexcept {
  *path = 0;
  uint64_t started = g_open_start_end.key();
  uint64_t key = LaunchGate::path_key(regions, scopes, started);
  const uint32_t epoch = g_launch_gate.epoch();
  uint32_t known = g_launch_gate.paths.find(key, epoch);
  if (known == VerdictCache::kNone) {
    try {
      const auto labels = [&](std::span<const uint32_t> ids) {
        std::vector<ScopeLabel> out;
        for (const uint32_t id : ids) out.push_back(x_options.label(id));
        return out;
      };
      // What is open may have changed meanwhile: the verdict is that of what was looked at.
      const std::vector<uint32_t> start_end = g_open_start_end.labels(&started);
      key = LaunchGate::path_key(regions, scopes, started);
      const OpenRanges open(labels(regions), labels(scopes), labels(start_end));
      const bool selected = !x_options.filter || !x_options.filter->needs_regions() ||
                            x_options.filter->matches_ranges(open.view());
      const std::lock_guard lock(x_mutex);
      known = x_strings.intern(open.path_text()) << 1 | static_cast<uint32_t>(selected);
      g_launch_gate.paths.put(key, epoch, known);
    } catch (...) {
      return false;
    }
  }
  *path = known >> 1;
  return known & 1;
}

bool LaunchSelector::selects_line(uint32_t frame) noexcept {
  const KernelFilter* filter = x_options.filter.get();
  if (!filter || (!filter->needs_lines() && !filter->needs_modules())) return true;
  const uint64_t key = LaunchGate::line_key(frame);
  const uint32_t epoch = g_launch_gate.epoch();
  const uint32_t known = g_launch_gate.lines.find(key, epoch);
  if (known != VerdictCache::kNone) return known == LaunchGate::kWanted;
  try {
    const uint32_t module = g_frame_tree.module_of(frame);
    // A module gets its name soon after it is first seen: until then nobody knows.
    if (filter->needs_modules() && module != 0 && !g_module_table.is_named(module)) return false;
    const bool selected = filter->matches_lines(lines_of_stack(g_frame_tree.python_of(frame))) &&
                          filter->matches_module(module_path(module));
    const std::lock_guard lock(x_mutex);
    g_launch_gate.lines.put(key, epoch, selected ? LaunchGate::kWanted : LaunchGate::kRefused);
    return selected;
  } catch (...) {
    return false;
  }
}

std::optional<SelectedLaunch> LaunchSelector::select(const LaunchEvent& launch) noexcept {
  SelectedLaunch s;
  const bool in_region = selects_path(launch.regions, launch.scopes, &s.region) && selects_line(launch.frame);
  const bool show_all = x_state && x_options.filter->spec().skip_before_match != 0;
  if (!in_region && !show_all) return std::nullopt;
  s.params = launch_params(launch.cbid, launch.call.functionParams);
  s.context = launch.call.contextUid;
  if (x_api->cuptiGetDeviceId) x_api->cuptiGetDeviceId(launch.call.context, &s.device);
  if (x_api->cuptiGetStreamIdEx)
    x_api->cuptiGetStreamIdEx(launch.call.context, s.params.stream, 0, &s.stream);
  LaunchView view;
  view.device = s.device;
  view.context = s.context;
  view.stream = s.stream;
  view.thread = launch.thread;
  view.step = g_running_step.load(std::memory_order_relaxed);
  view.grid = s.params.grid;
  view.block = s.params.block;
  view.shared_memory = s.params.dynamic_shared_memory;

  const std::lock_guard lock(x_mutex);
  const Name* name = name_of(launch.call.symbolName);
  if (!name) return std::nullopt;
  s.name = name->text;
  if (!x_options.filter) {
    if (!name->verdict.accepted) return std::nullopt;
  } else if (x_state) {
    if (x_done.load(std::memory_order_relaxed)) return std::nullopt;
    const bool selected = x_state->select(*x_options.filter, view, name->verdict, in_region);
    if (x_state->done()) {
      x_done.store(true);
      g_launch_gate.close();
    }
    if (!selected) return std::nullopt;
  } else if (!x_options.filter->matches_stateless(view, name->verdict, in_region)) {
    return std::nullopt;
  }
  x_selected.fetch_add(1, std::memory_order_relaxed);
  return s;
}

std::string LaunchSelector::text(uint32_t id) const {
  const std::lock_guard lock(x_mutex);
  return std::string(x_strings.at(id));
}

}  // namespace cuptiprof
