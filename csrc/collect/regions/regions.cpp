#include "collect/regions/regions.h"

#include <algorithm>

namespace cuptiprof {

bool push_after_all(ThreadSlot& slot, const Event& e) noexcept {
  const uint32_t elsewhere = slot.left_elsewhere.exchange(0, std::memory_order_relaxed);
  slot.open_regions -= std::min(elsewhere, slot.open_regions);
  if (elsewhere && slot.ring.push(e, slot.open_regions + 1)) return true;
  count(g_region_overflow);
  return false;
}

void mark_step(uint32_t number) noexcept {
  g_running_step.store(number + 1, std::memory_order_relaxed);
  ThreadSlot* slot = this_thread_slot();
  if (!slot)
    count(g_beyond_slots);
  else if (!slot->ring.push({.stamp = read_stamp(),
                             .task = 0,
                             .metadata = nullptr,
                             .id = number,
                             .kind = EventKind::kStep},
                            slot->open_regions))
    count(g_region_overflow);
}

}  // namespace cuptiprof
