// A thread's open regions as they are now, for those who must know at a launch: the decoder learns of them
// later.
//
// Written by the owning thread, only while somebody wants them. Others read them too (a worker thread
// inherits), while the owner usually waits for that worker; a read in the middle of a change gives a mixture,
// never garbage.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

namespace cuptiprof {

inline std::atomic<uint32_t> g_open_regions_epoch{1};

class OpenRegions {
 public:
  static constexpr uint32_t kMax = 32;  // deeper ones are not seen by counters

  // What was open is forgotten on every thread; each notices when it looks next.
  static void forget_all() noexcept { g_open_regions_epoch.fetch_add(1); }

  void push(uint32_t name, uint64_t task) noexcept {
    const uint32_t epoch = g_open_regions_epoch.load(std::memory_order_relaxed);
    if (x_epoch.load(std::memory_order_relaxed) != epoch) {
      x_depth.store(0, std::memory_order_relaxed);
      x_epoch.store(epoch, std::memory_order_release);
    }
    const uint32_t n = x_depth.load(std::memory_order_relaxed);
    if (n < kMax) {
      x_entries[n].name.store(name, std::memory_order_relaxed);
      x_entries[n].task.store(task, std::memory_order_relaxed);
    }
    x_depth.store(n + 1, std::memory_order_release);
  }

  // Takes out the newest entry of this name, of this task if there is one (tasks interleave on a thread).
  // Returns where it was; kMax: it is not there.
  uint32_t pop(uint32_t name, uint64_t task) noexcept {
    if (x_epoch.load(std::memory_order_relaxed) != g_open_regions_epoch.load(std::memory_order_relaxed))
      return kMax;
    const uint32_t n = x_depth.load(std::memory_order_relaxed);
    if (n == 0) return kMax;
    if (n > kMax) {
      x_depth.store(n - 1, std::memory_order_release);
      return kMax;
    }
    uint32_t found = n;
    for (uint32_t i = n; i-- > 0;) {
      if (x_entries[i].name.load(std::memory_order_relaxed) != name) continue;
      if (found == n) found = i;
      if (x_entries[i].task.load(std::memory_order_relaxed) == task) {
        found = i;
        break;
      }
    }
    if (found == n) return kMax;
    for (uint32_t i = found; i + 1 < n; ++i) {
      x_entries[i].name.store(x_entries[i + 1].name.load(std::memory_order_relaxed),
                              std::memory_order_relaxed);
      x_entries[i].task.store(x_entries[i + 1].task.load(std::memory_order_relaxed),
                              std::memory_order_relaxed);
    }
    x_depth.store(n - 1, std::memory_order_release);
    return found;
  }

  void clear() noexcept { x_depth.store(0, std::memory_order_release); }
  uint32_t depth() const noexcept {
    if (x_epoch.load(std::memory_order_acquire) != g_open_regions_epoch.load(std::memory_order_relaxed))
      return 0;
    return std::min(x_depth.load(std::memory_order_acquire), kMax);
  }

  // Names of the regions open in `task`, outermost first, after those of the thread's outermost code. `out`
  // has room for kMax. Returns how many.
  uint32_t path(uint64_t task, uint32_t* out) const noexcept {
    const uint32_t n = depth();
    uint32_t count = 0;
    for (const bool outermost : {true, false}) {
      if (outermost && task == 0) continue;
      for (uint32_t i = 0; i < n; ++i)
        if (x_entries[i].task.load(std::memory_order_relaxed) == (outermost ? 0 : task))
          out[count++] = x_entries[i].name.load(std::memory_order_relaxed);
    }
    return count;
  }

  // The task all open regions belong to. False: none is open, or they belong to several.
  bool only_task(uint64_t* task) const noexcept {
    const uint32_t n = depth();
    for (uint32_t i = 0; i < n; ++i) {
      const uint64_t t = x_entries[i].task.load(std::memory_order_relaxed);
      if (i > 0 && t != *task) return false;
      *task = t;
    }
    return n > 0;
  }

 private:
  struct Entry {
    std::atomic<uint64_t> task{0};
    std::atomic<uint32_t> name{0};
  };
  std::atomic<uint32_t> x_epoch{0};  // an older one: nothing is open
  std::atomic<uint32_t> x_depth{0};
  Entry x_entries[kMax];
};

}  // namespace cuptiprof
