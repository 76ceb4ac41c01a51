#include "collect/live_regions.h"

#include <time.h>

#include <algorithm>
#include <bit>

#include "collect/activity.h"
#include "collect/regions.h"
#include "cupti/api.h"

namespace cuptiprof {
namespace {

std::atomic<RegionObserver*> g_region_observer{nullptr};

// The path of the only other thread that has regions open, in one task.
uint32_t inherited_path(const ThreadSlot& self, uint32_t* out) noexcept {
  const ThreadSlot* only = nullptr;
  for (uint32_t i = 0; i < thread_slot_count(); ++i) {
    const ThreadSlot& other = thread_slot(i);
    if (&other == &self || other.is_worker.load(std::memory_order_relaxed) || other.open.depth() == 0)
      continue;
    if (only) return 0;
    only = &other;
  }
  uint64_t task = 0;
  return only && only->open.only_task(&task) ? only->open.path(task, out) : 0;
}

}  // namespace

uint32_t live_region_path(const ThreadSlot& slot, uint64_t task, uint32_t* out) noexcept {
  const uint32_t own = slot.open.path(task, out);
  const bool worker = slot.is_worker.load(std::memory_order_relaxed);
  if (own == 0)
    return worker || !slot.ever_entered.load(std::memory_order_relaxed) ? inherited_path(slot, out) : 0;
  if (!worker) return own;
  uint32_t whole[OpenRegions::kMax];
  const uint32_t before = inherited_path(slot, whole);
  const uint32_t kept = std::min(own, OpenRegions::kMax - before);
  std::copy_n(out, kept, whole + before);
  std::copy_n(whole, before + kept, out);
  return before + kept;
}

void set_region_observer(RegionObserver* observer) noexcept { g_region_observer.store(observer); }

bool wait_for_observers(std::chrono::milliseconds patience, const LaunchObserver* observer) noexcept {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  const timespec pause{0, 50'000};
  bool all = true;
  for (uint32_t i = 0; i < thread_slot_count(); ++i) {
    const ThreadSlot& slot = thread_slot(i);
    while (slot.observing.load()) {
      const LaunchObserver* by = slot.counted_by.load();
      if (by && by != observer) break;
      if (std::chrono::steady_clock::now() >= deadline) {
        all = false;
        break;
      }
      nanosleep(&pause, nullptr);
    }
  }
  return all;
}

void region_opened(ThreadSlot& slot, uint32_t name, uint64_t task, int64_t time) noexcept {
  const uint32_t index = slot.open.depth();
  slot.open.push(name, task);
  if (index >= OpenRegions::kMax) return;
  slot.counted_regions &= (1u << index) - 1;  // what a session before this one left is nobody's
  if (slot.observing.exchange(true)) return;  // inside an observer: CUPTI called back into us
  if (RegionObserver* observer = g_region_observer.load()) {
    uint32_t path[OpenRegions::kMax];
    const uint32_t depth = live_region_path(slot, task, path);
    const RegionEvent event{time,
                            slot.tid.load(std::memory_order_relaxed),
                            {path, depth},
                            Activity::instance().current_context(),
                            static_cast<uint32_t>(std::popcount(slot.counted_regions))};
    if (observer->entered(event)) slot.counted_regions |= 1u << index;
  }
  slot.observing.store(false, std::memory_order_release);
}

void region_closes(ThreadSlot& slot, uint32_t name, uint64_t task, int64_t time) noexcept {
  const uint32_t index = slot.open.pop(name, task);
  if (index == OpenRegions::kMax) return;
  const bool counted = slot.counted_regions >> index & 1;
  // Entries above the one taken out moved down by one.
  const uint32_t below = slot.counted_regions & ((1u << index) - 1);
  slot.counted_regions = below | (slot.counted_regions >> 1 & ~((1u << index) - 1));
  if (!counted || slot.observing.exchange(true)) return;
  if (RegionObserver* observer = g_region_observer.load())
    observer->left({time,
                    slot.tid.load(std::memory_order_relaxed),
                    {},
                    nullptr,
                    static_cast<uint32_t>(std::popcount(below))});
  slot.observing.store(false, std::memory_order_release);
}

}  // namespace cuptiprof
