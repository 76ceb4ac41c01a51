// The counters of one filter over one run: skip, count, every, and the invocations of launch IDs. Its owner
// shows it each launch once, in launch order, and never from two threads at a time: a launch selector while
// counters are collected (in launch callbacks), select_rows() over a finished table.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "filter/kernel_filter.h"

namespace cuptiprof {

// Counters by 64-bit hash, of fixed capacity: memory is reserved at the start and touched as keys appear,
// nothing is allocated later, so a launch callback may use it. Distinct keys with one hash would share a
// counter (2^-64 a pair).
class CounterTable {
 public:
  explicit CounterTable(size_t max_keys);
  // The counter of the key, made at zero; nullptr when max_keys keys are in use.
  [[nodiscard]] uint64_t* find(uint64_t key) noexcept;

 private:
  struct Slot {
    uint64_t key;  // 0: free
    uint64_t count;
  };
  struct Free {
    void operator()(Slot* p) const noexcept { std::free(p); }
  };
  size_t x_mask;  // number of slots - 1: twice max_keys, a power of two
  size_t x_left;  // keys that still have room
  std::unique_ptr<Slot[], Free> x_slots;
};

class FilterState {
 public:
  // Bound: 2^18 invocation keys, and 2^17 groups (devices or launch configurations, two counters each): 8 MiB
  // of address space each, reserved only where the filter needs them. A launch with a key beyond the bound is
  // not selected and counted in overflowed().
  static constexpr size_t kMaxKeys = size_t{1} << 18;
  explicit FilterState(const KernelFilter& filter);

  // The verdict on the next launch. `filter`: the one it was made for; `name` and `ranges_match`: that one's
  // verdicts on the launch's name and open ranges.
  [[nodiscard]] bool select(const KernelFilter& filter, const LaunchView& launch, const NameVerdict& name,
                            bool ranges_match) noexcept;
  // True when no later launch can be selected (count= reached): collection may stop.
  [[nodiscard]] bool done() const noexcept { return x_done; }
  [[nodiscard]] uint64_t selected() const noexcept { return x_selected; }
  [[nodiscard]] uint64_t overflowed() const noexcept { return x_overflowed; }

 private:
  // What skip and count are counted over: all launches, those of a device, or of a launch configuration.
  struct Group {
    uint64_t* seen;     // launches, up to skip_before_match
    uint64_t* matched;  // launches that passed every test before skip
  };
  // False: there is no room for one more group.
  [[nodiscard]] bool group_of(const KernelFilter& filter, const LaunchView& launch, Group& out) noexcept;
  [[nodiscard]] bool invocation_matches(const KernelFilter& filter, const LaunchView& launch,
                                        const NameVerdict& name) noexcept;
  // skip, every and count, for the next launch of a group.
  [[nodiscard]] bool is_its_turn(const FilterSpec& spec, uint64_t& matched) noexcept;

  std::unique_ptr<CounterTable> x_invocations, x_groups;  // null: this filter needs none
  uint64_t x_seen = 0, x_matched = 0;                     // of the one group in mode global
  uint64_t x_selected = 0, x_overflowed = 0;
  uint64_t x_groups_done = 0;  // that reached count
  bool x_done = false;
};

}  // namespace cuptiprof
