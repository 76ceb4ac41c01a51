// A thread's open regions as they are now, for those who must know at a launch: the decoder learns of them
// later.
//
// Written by the owning thread, only while somebody wants them. Others read them too (autograd threads, and
// threads that were handed a region); a read in the middle of a change gives a mixture, never garbage.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

namespace cuptiprof {

inline std::atomic<uint32_t> g_open_regions_epoch{1};

class OpenRegions {
 public:
  static constexpr uint32_t kMax = 32;  // deeper ones are not seen by counters

  struct Entry {
    std::atomic<uint64_t> task{0};
    std::atomic<uint64_t> region{0};  // its ID; 0: left, on another thread
    std::atomic<uint64_t> taken{0};   // by whose exit it goes: itself, or the hand-over that brought it here
    std::atomic<uint32_t> name{0};
  };

  // What was open is forgotten on every thread; each notices when it looks next.
  static void forget_all() noexcept { g_open_regions_epoch.fetch_add(1); }

  void push(uint32_t name, uint64_t region, uint64_t taken, uint64_t task) noexcept {
    const uint32_t epoch = g_open_regions_epoch.load(std::memory_order_relaxed);
    if (x_epoch.load(std::memory_order_relaxed) != epoch) {
      x_depth.store(0, std::memory_order_relaxed);
      x_epoch.store(epoch, std::memory_order_release);
    }
    const uint32_t n = x_depth.load(std::memory_order_relaxed);
    if (n < kMax) {
      x_entries[n].name.store(name, std::memory_order_relaxed);
      x_entries[n].task.store(task, std::memory_order_relaxed);
      x_entries[n].taken.store(taken, std::memory_order_relaxed);
      x_entries[n].region.store(region, std::memory_order_relaxed);
    }
    x_depth.store(n + 1, std::memory_order_release);
  }

  // Takes out the newest entry that goes with this ID. Returns where it was; kMax: there is none (left).
  uint32_t pop(uint64_t taken) noexcept {
    if (x_epoch.load(std::memory_order_relaxed) != g_open_regions_epoch.load(std::memory_order_relaxed))
      return kMax;
    const uint32_t n = x_depth.load(std::memory_order_relaxed);
    const uint32_t held = std::min(n, kMax);
    uint32_t found = held;
    while (found > 0 && x_entries[found - 1].taken.load(std::memory_order_relaxed) != taken) --found;
    if (found == 0) {
      if (n > kMax) x_depth.store(n - 1, std::memory_order_release);  // one of those that found no room
      return kMax;
    }
    for (uint32_t i = found; i < held; ++i) {
      const Entry& from = x_entries[i];
      Entry& to = x_entries[i - 1];
      to.name.store(from.name.load(std::memory_order_relaxed), std::memory_order_relaxed);
      to.task.store(from.task.load(std::memory_order_relaxed), std::memory_order_relaxed);
      to.taken.store(from.taken.load(std::memory_order_relaxed), std::memory_order_relaxed);
      to.region.store(from.region.load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
    x_depth.store(std::min(n, kMax) - 1, std::memory_order_release);
    return found - 1;
  }

  // On another thread than the owner's: the region was left there. Its entry goes when the owner's next does.
  void left_elsewhere(uint64_t region) noexcept {
    for (uint32_t i = depth(); i-- > 0;) {
      uint64_t id = region;
      if (x_entries[i].region.compare_exchange_strong(id, 0, std::memory_order_relaxed)) return;
    }
  }
  // The newest entry that was left elsewhere; 0: none.
  uint64_t taken_of_left() const noexcept {
    for (uint32_t i = depth(); i-- > 0;)
      if (x_entries[i].region.load(std::memory_order_relaxed) == 0)
        return x_entries[i].taken.load(std::memory_order_relaxed);
    return 0;
  }

  bool holds(uint64_t region) const noexcept {
    for (uint32_t i = depth(); i-- > 0;)
      if (x_entries[i].region.load(std::memory_order_relaxed) == region) return true;
    return false;
  }

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
