// A thread's open regions as they are now, for those who must know at a launch: the decoder learns of them
// later.
//
// Written by the owning thread, only while somebody wants them (counters, or an observer of regions). Others
// read them too (autograd threads, and threads that were handed a region), and mark what they left
// (left_elsewhere); a read in the middle of a change gives a mixture, never garbage. Nothing here locks or
// allocates: launch callbacks look.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

namespace cuptiprof {

// What a thread noted under an older number is forgotten (OpenRegions::forget_all).
inline std::atomic<uint32_t> g_open_regions_epoch{1};

class OpenRegions {
 public:
  static constexpr uint32_t kMax = 32;  // deeper ones are not seen by counters

  struct Entry {
    std::atomic<uint64_t> task{0};    // as in Event
    std::atomic<uint64_t> region{0};  // its ID; 0: left, on another thread
    // Whose exit takes it out: its own ID, or that of the hand-over that brought it here.
    std::atomic<uint64_t> exit_id{0};
    std::atomic<uint32_t> name{0};
  };

  // What was open is forgotten on every thread; each notices when it looks next.
  static void forget_all() noexcept { g_open_regions_epoch.fetch_add(1); }

  // Owner: a region is entered, or handed to this thread.
  void push(uint32_t name, uint64_t region, uint64_t exit_id, uint64_t task) noexcept {
    const uint32_t epoch = g_open_regions_epoch.load(std::memory_order_relaxed);
    if (x_epoch.load(std::memory_order_relaxed) != epoch) {
      x_depth.store(0, std::memory_order_relaxed);
      x_epoch.store(epoch, std::memory_order_release);
    }
    const uint32_t n = x_depth.load(std::memory_order_relaxed);
    if (n < kMax) {
      x_entries[n].name.store(name, std::memory_order_relaxed);
      x_entries[n].task.store(task, std::memory_order_relaxed);
      x_entries[n].exit_id.store(exit_id, std::memory_order_relaxed);
      x_entries[n].region.store(region, std::memory_order_relaxed);
    }
    x_depth.store(n + 1, std::memory_order_release);
  }

  // Owner: takes out the newest entry that goes with this ID. Returns where it was; kMax: there is none
  // (left).
  uint32_t pop(uint64_t exit_id) noexcept {
    if (x_epoch.load(std::memory_order_relaxed) != g_open_regions_epoch.load(std::memory_order_relaxed))
      return kMax;
    const uint32_t n = x_depth.load(std::memory_order_relaxed);
    const uint32_t held = std::min(n, kMax);
    uint32_t found = held;
    while (found > 0 && x_entries[found - 1].exit_id.load(std::memory_order_relaxed) != exit_id) --found;
    if (found == 0) {
      if (n > kMax) x_depth.store(n - 1, std::memory_order_release);  // one of those that found no room
      return kMax;
    }
    for (uint32_t i = found; i < held; ++i) {
      const Entry& from = x_entries[i];
      Entry& to = x_entries[i - 1];
      to.name.store(from.name.load(std::memory_order_relaxed), std::memory_order_relaxed);
      to.task.store(from.task.load(std::memory_order_relaxed), std::memory_order_relaxed);
      to.exit_id.store(from.exit_id.load(std::memory_order_relaxed), std::memory_order_relaxed);
      to.region.store(from.region.load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
    x_depth.store(std::min(n, kMax) - 1, std::memory_order_release);
    return found - 1;
  }

  // Any other thread: the region was left there. Its entry goes when the owner looks next (exit_id_of_left).
  void left_elsewhere(uint64_t region) noexcept {
    for (uint32_t i = depth(); i-- > 0;) {
      uint64_t id = region;
      if (x_entries[i].region.compare_exchange_strong(id, 0, std::memory_order_relaxed)) return;
    }
  }
  // Owner: what takes out the newest entry that was left elsewhere; 0: there is none.
  uint64_t exit_id_of_left() const noexcept {
    for (uint32_t i = depth(); i-- > 0;)
      if (x_entries[i].region.load(std::memory_order_relaxed) == 0)
        return x_entries[i].exit_id.load(std::memory_order_relaxed);
    return 0;
  }

  // Any thread.
  bool holds(uint64_t region) const noexcept {
    for (uint32_t i = depth(); i-- > 0;)
      if (x_entries[i].region.load(std::memory_order_relaxed) == region) return true;
    return false;
  }

  // When the slot gets a new owner.
  void clear() noexcept { x_depth.store(0, std::memory_order_release); }
  uint32_t depth() const noexcept {
    if (x_epoch.load(std::memory_order_acquire) != g_open_regions_epoch.load(std::memory_order_relaxed))
      return 0;
    return std::min(x_depth.load(std::memory_order_acquire), kMax);
  }
  const Entry& entry(uint32_t i) const noexcept { return x_entries[i]; }

 private:
  std::atomic<uint32_t> x_epoch{0};  // an older one: nothing is open
  std::atomic<uint32_t> x_depth{0};
  Entry x_entries[kMax];
};

}  // namespace cuptiprof
