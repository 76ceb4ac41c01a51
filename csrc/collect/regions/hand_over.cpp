#include "collect/regions/hand_over.h"

#include <algorithm>

#include "collect/regions/backward_caller.h"
#include "collect/regions/live_regions.h"
#include "collect/regions/regions.h"

namespace cuptiprof {
namespace {

std::atomic<uint32_t> g_tokens{0};

bool push(ThreadSlot& slot, const Event& e) noexcept {
  if (slot.ring.push(e, slot.open_regions)) return true;
  count(g_region_overflow);
  return false;
}

}  // namespace

RegionToken hand_over(uint64_t task) noexcept {
  RegionToken token;
  const uint32_t mode = g_region_mode.load(std::memory_order_relaxed);
  if (!(mode & kRegionsOn)) return token;
  ThreadSlot* slot = this_thread_slot();
  if (!slot) {
    count(g_beyond_slots);
    return token;
  }
  // A worker's own stack may be empty and it works inside a region nevertheless.
  if (slot->open_regions <= slot->left_elsewhere.load(std::memory_order_relaxed) &&
      !slot->is_worker.load(std::memory_order_relaxed))
    return token;
  if (slot->is_worker.load(std::memory_order_relaxed)) note_backward_caller(*slot);
  uint32_t number = g_tokens.fetch_add(1, std::memory_order_relaxed) + 1;
  if (number == 0) number = g_tokens.fetch_add(1, std::memory_order_relaxed) + 1;
  token.stamp = read_stamp();
  if (!push(*slot, {token.stamp, task, {nullptr}, number, EventKind::kHandOver})) return token;
  token.number = number;
  if (mode & kRegionsWatched) token.depth = live_region_path(*slot, task, token.names, token.regions);
  return token;
}

uint64_t adopt_region(const RegionToken& token, uint64_t task) noexcept {
  const uint32_t mode = g_region_mode.load(std::memory_order_relaxed);
  if (token.number == 0 || !(mode & kRegionsOn)) return 0;
  ThreadSlot* slot = this_thread_slot();
  if (!slot) {
    count(g_beyond_slots);
    return 0;
  }
  // Events are applied in the order of their stamps: this one comes after the one it refers to.
  const int64_t stamp = std::max(read_stamp(), token.stamp + 1);
  const uint64_t id = push_opening(*slot, {stamp, task, {nullptr}, token.number, EventKind::kAdopt});
  if (id != 0 && mode & kRegionsWatched)
    for (uint32_t i = 0; i < token.depth; ++i) slot->open.push(token.names[i], token.regions[i], id, task);
  return id;
}

void backward_begins(uint64_t task, bool of_torch) noexcept {
  if (!(g_region_mode.load(std::memory_order_relaxed) & kRegionsOn)) return;
  ThreadSlot* slot = this_thread_slot();
  // A worker that calls the engine again (checkpointing) still works for the thread it worked for.
  if (!slot || slot->is_worker.load(std::memory_order_relaxed)) return;
  slot->backward_task.store(task, std::memory_order_relaxed);
  if (slot->in_backward.load(std::memory_order_relaxed) == 0)
    slot->marked_caller.store(of_torch && mark_backward_caller(*slot), std::memory_order_relaxed);
  slot->in_backward.fetch_add(1, std::memory_order_release);
  const uint32_t marked = slot->marked_caller.load(std::memory_order_relaxed);
  push(*slot, {read_stamp(), task, {nullptr}, marked, EventKind::kBackwardBegins});
}

void backward_ends() noexcept {
  ThreadSlot* slot = this_thread_slot();
  if (!slot || slot->in_backward.load(std::memory_order_relaxed) == 0) return;
  if (slot->in_backward.fetch_sub(1, std::memory_order_release) == 1 &&
      slot->marked_caller.load(std::memory_order_relaxed))
    unmark_backward_caller();
  push(*slot, {read_stamp(), 0, {nullptr}, 0, EventKind::kBackwardEnds});
}

}  // namespace cuptiprof
