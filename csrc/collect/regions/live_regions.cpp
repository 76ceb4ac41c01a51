#include "collect/regions/live_regions.h"

#include <time.h>

#include <algorithm>
#include <bit>

#include "base/clock.h"
#include "collect/regions/backward_caller.h"
#include "collect/regions/regions.h"
#include "cupti/api.h"

namespace cuptiprof {
namespace {

std::atomic<RegionObserver*> g_region_observer{nullptr};
std::atomic<CUcontext (*)() noexcept> g_current_context{nullptr};

struct Path {
  uint32_t* names;
  uint64_t* regions;
  uint32_t depth = 0;
};

// Those of one thread, after what `path` has already.
void append_open(const ThreadSlot& slot, uint64_t task, Path& path) noexcept {
  const uint32_t n = slot.open.depth();
  for (const uint64_t of : {uint64_t{0}, task}) {  // the thread's outermost code first
    for (uint32_t i = 0; i < n && path.depth < OpenRegions::kMax; ++i) {
      const OpenRegions::Entry& e = slot.open.entry(i);
      const uint64_t region = e.region.load(std::memory_order_relaxed);
      if (e.task.load(std::memory_order_relaxed) != of || region == 0) continue;
      const bool handed = region != e.exit_id.load(std::memory_order_relaxed);
      if (handed && !thread_slot(slot_of_region(region)).open.holds(region)) continue;  // left meanwhile
      path.names[path.depth] = e.name.load(std::memory_order_relaxed);
      if (path.regions) path.regions[path.depth] = region;
      ++path.depth;
    }
    if (task == 0) return;
  }
}

// The thread for which the calling one, of torch's autograd engine, works: as torch says, else the only one
// that is inside the engine. Null: none, or several.
const ThreadSlot* backward_caller() noexcept {
  if (const ThreadSlot* marked = marked_backward_caller())
    return marked->in_backward.load(std::memory_order_acquire) != 0 ? marked : nullptr;
  const ThreadSlot* only = nullptr;
  for (uint32_t i = 0; i < thread_slot_count(); ++i) {
    const ThreadSlot& other = thread_slot(i);
    if (other.in_backward.load(std::memory_order_acquire) == 0 ||
        other.state.load(std::memory_order_relaxed) != SlotState::kInUse)
      continue;
    if (only) return nullptr;
    only = &other;
  }
  // A thread that works for one whom torch knows would have been told.
  return only && !only->marked_caller.load(std::memory_order_relaxed) ? only : nullptr;
}

// Takes out what goes with this ID, and ends the counting of what was counted.
void take_out(ThreadSlot& slot, uint64_t id, int64_t time) noexcept {
  for (uint32_t index; (index = slot.open.pop(id)) != OpenRegions::kMax;) {
    const bool counted = slot.counted_regions >> index & 1;
    // Entries above the one taken out moved down by one.
    const uint32_t below = slot.counted_regions & ((1u << index) - 1);
    slot.counted_regions = below | (slot.counted_regions >> 1 & ~((1u << index) - 1));
    if (!counted || slot.observing.exchange(true)) continue;
    if (RegionObserver* observer = g_region_observer.load())
      observer->left({time,
                      slot.tid.load(std::memory_order_relaxed),
                      {},
                      nullptr,
                      static_cast<uint32_t>(std::popcount(below))});
    slot.observing.store(false, std::memory_order_release);
  }
}

void take_out_left(ThreadSlot& slot, int64_t time) noexcept {
  while (const uint64_t id = slot.open.exit_id_of_left()) take_out(slot, id, time);
}

}  // namespace

uint32_t live_region_path(const ThreadSlot& slot, uint64_t task, uint32_t* names,
                          uint64_t* regions) noexcept {
  Path path{names, regions};
  if (slot.is_worker.load(std::memory_order_relaxed))
    if (const ThreadSlot* caller = backward_caller())
      append_open(*caller, caller->backward_task.load(std::memory_order_relaxed), path);
  append_open(slot, task, path);
  return path.depth;
}

void set_region_observer(RegionObserver* observer) noexcept { g_region_observer.store(observer); }

void set_context_source(CUcontext (*current_context)() noexcept) noexcept {
  g_current_context.store(current_context);
}

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

void region_opened(ThreadSlot& slot, uint32_t name, uint64_t id, uint64_t task) noexcept {
  const int64_t time = now_ns();
  take_out_left(slot, time);
  const uint32_t index = slot.open.depth();
  slot.open.push(name, id, id, task);
  if (index >= OpenRegions::kMax) return;
  slot.counted_regions &= (1u << index) - 1;  // what a session before this one left is nobody's
  if (slot.observing.exchange(true)) return;  // inside an observer: CUPTI called back into us
  if (RegionObserver* observer = g_region_observer.load()) {
    uint32_t path[OpenRegions::kMax];
    const uint32_t depth = live_region_path(slot, task, path);
    const RegionEvent event{time,
                            slot.tid.load(std::memory_order_relaxed),
                            {path, depth},
                            g_current_context.load()(),
                            static_cast<uint32_t>(std::popcount(slot.counted_regions))};
    if (observer->entered(event)) slot.counted_regions |= 1u << index;
  }
  slot.observing.store(false, std::memory_order_release);
}

void region_closes(ThreadSlot& slot, uint64_t id) noexcept {
  const int64_t time = now_ns();
  if (slot_of_region(id) != slot.index)
    thread_slot(slot_of_region(id)).open.left_elsewhere(id);
  else
    take_out(slot, id, time);
  take_out_left(slot, time);
}

}  // namespace cuptiprof
