// Which launches are counted, decided in the launch callback by the same filter as everything else.
//
// The verdict on a name is made once per distinct name and remembered by the pointer CUPTI hands out; the
// verdict on open regions once per distinct path. A launch that is not selected costs one look-up.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/string_table.h"
#include "cupti/api.h"
#include "filter/filter_state.h"
#include "launch/launch_gate.h"
#include "launch/launch_params.h"
#include "launch/observers.h"
#include "threads/scope_label.h"

namespace cuptiprof {

struct SelectedLaunch {
  uint32_t name = 0, region = 0;  // IDs in the selector's strings
  uint32_t device = 0, context = 0, stream = 0;
  LaunchParams params;
};

struct SelectorOptions {
  std::shared_ptr<const KernelFilter> filter;  // null: every launch
  bool communicating = false;                  // count kernels that wait for other GPUs too
  ScopeLabel (*label)(uint32_t) = nullptr;     // of the IDs in a LaunchEvent
};

class LaunchSelector {
 public:
  LaunchSelector(std::shared_ptr<const Api> api, SelectorOptions options);

  // Could a launch of this name be selected? Asked of names that the gate does not know to be refused.
  [[nodiscard]] bool wants(const char* symbol) noexcept;
  // The whole filter, counters included; launches are shown in launch order, those that wants() refused left
  // out.
  [[nodiscard]] std::optional<SelectedLaunch> select(const LaunchEvent& launch) noexcept;
  // ID of the path and whether the filter's region patterns select it.
  [[nodiscard]] bool selects_path(std::span<const uint32_t> regions, std::span<const uint32_t> scopes,
                                  uint32_t* path) noexcept;

  // Whether the filter selects work from where Python stands (LaunchEvent::frame).
  [[nodiscard]] bool selects_line(uint32_t frame) noexcept;

  [[nodiscard]] std::string text(uint32_t id) const;
  // Distinct names judged, and how many of them communicate between GPUs and were left out for that.
  [[nodiscard]] uint64_t names_judged() const noexcept { return x_judged.load(); }
  [[nodiscard]] uint64_t communicating_left_out() const noexcept { return x_left_out.load(); }
  // A region that was selected.
  void count_selected() noexcept { x_selected.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] uint64_t selected() const noexcept { return x_selected.load(); }

 private:
  struct Name {
    NameVerdict verdict;
    uint32_t text;
  };
  const Name* name_of(const char* symbol) noexcept;

  std::shared_ptr<const Api> x_api;
  SelectorOptions x_options;
  std::atomic<bool> x_done{false};
  std::atomic<uint64_t> x_judged{0}, x_left_out{0}, x_selected{0};
  mutable std::mutex x_mutex;  // guards the rest; no CUPTI call is made under it
  StringTable x_strings;
  std::unordered_map<uint32_t, Name> x_names;  // by ID of the text
  std::unordered_map<uint32_t, bool> x_paths;  // by ID of the text
  std::unique_ptr<FilterState> x_state;
};

// Kernels that wait for kernels on other GPUs: replayed or serialised they can hang (NCCL, NVSHMEM, custom
// all-reduces).
bool communicates(std::string_view function_name) noexcept;

}  // namespace cuptiprof
