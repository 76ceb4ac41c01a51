// The hot path of a region: two events in the calling thread's ring.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>

#include "base/stamp_clock.h"
#include "collect/buffers/decoder_bell.h"
#include "store/losses.h"
#include "threads/thread_slots.h"

namespace cuptiprof {

// What the user said about one entry of a region, beyond its name.
struct RegionMetadata {
  double flops;      // NaN: not given
  double bytes;      // NaN: not given
  std::string json;  // the other keywords; empty: none
};

// What a region has to do now: one word, read once by each entry and each exit.
enum RegionMode : uint32_t {
  kRegionsOn = 1,       // a session runs and wants regions
  kRegionsWatched = 2,  // somebody wants to know of regions as they happen
};
inline std::atomic<uint32_t> g_region_mode{0};
inline void set_region_mode(RegionMode bit, bool on) noexcept {
  on ? g_region_mode.fetch_or(bit) : g_region_mode.fetch_and(~uint32_t{bit});
}
inline std::atomic<uint64_t> g_region_overflow{0};   // events that did not fit into a ring
inline std::atomic<uint64_t> g_beyond_slots{0};      // events of threads for which there was no slot
inline std::atomic<uint64_t> g_metadata_dropped{0};  // keywords whose values could not be written
inline std::atomic<uint64_t> g_metadata_as_text{0};  // keywords that were written as text

// A training step begins, on whatever thread: work launched from now on, on all of them, belongs to it.
void mark_step(uint32_t number) noexcept;

// kRegionsWatched: what an entry and an exit do beside their event (live_regions.h).
void region_opened(ThreadSlot& slot, uint32_t name, uint64_t id, uint64_t task) noexcept;
void region_closes(ThreadSlot& slot, uint64_t id) noexcept;

// The ring is full: room kept for exits that came on other threads is free again. False: there was none, and
// the event is lost, which is counted.
bool push_after_all(ThreadSlot& slot, const Event& e) noexcept;

// Writes an event that a later kExit must follow, for which room is kept. 0: the ring is full. Else the ID of
// what was opened.
[[gnu::always_inline]] inline uint64_t push_opening(ThreadSlot& slot, const Event& e) noexcept {
  if (!slot.ring.push(e, slot.open_regions + 1)) [[unlikely]] {
    if (!push_after_all(slot, e)) return 0;
  }
  ++slot.open_regions;
  const uint64_t pushed = slot.ring.pushed();
  if (pushed >= slot.next_wake) [[unlikely]] {
    slot.next_wake = pushed + kWakeEvents;
    g_decoder_bell.ring();
  }
  return region_id(slot, pushed - 1);
}

// One of torch's autograd threads, before an event that depends on it: for whom it works (backward_caller.h).
void note_backward_caller(ThreadSlot& slot) noexcept;

// Called where `mode`, read by the caller, has kRegionsOn. Takes ownership of metadata. Returns what
// exit_region wants. 0: not recorded (counted); then there is nothing to leave.
inline uint64_t enter_region(uint32_t mode, uint32_t name, RegionMetadata* metadata, uint64_t task) noexcept {
  ThreadSlot* slot = this_thread_slot();
  if (!slot) [[unlikely]] {
    delete metadata;
    count(g_beyond_slots);
    return 0;
  }
  if (slot->is_worker.load(std::memory_order_relaxed)) [[unlikely]]
    note_backward_caller(*slot);
  const uint64_t id = push_opening(*slot, {read_stamp(), task, {metadata}, name, EventKind::kEnter});
  if (id == 0) [[unlikely]] {
    delete metadata;
    return 0;
  }
  if (mode & kRegionsWatched) [[unlikely]]
    region_opened(*slot, name, id, task);
  return id;
}

// `id` from enter_region or adopt_region, on any thread; `task` is where to look first. Room for the event
// was kept on the thread that entered, so it cannot fail there.
inline void exit_region(uint64_t id, uint64_t task) noexcept {
  ThreadSlot* slot = this_thread_slot();
  if (!slot) [[unlikely]] {
    count(g_beyond_slots);
    return;
  }
  const int64_t stamp = read_stamp();
  const bool here = slot_of_region(id) == slot->index;
  if (g_region_mode.load(std::memory_order_relaxed) & kRegionsWatched) [[unlikely]]
    region_closes(*slot, id);
  if (!slot->ring.push({.stamp = stamp, .task = task, .region = id, .id = 0, .kind = EventKind::kExit},
                       here ? 0 : slot->open_regions)) [[unlikely]]
    count(g_region_overflow);
  if (!here) [[unlikely]]
    thread_slot(slot_of_region(id)).left_elsewhere.fetch_add(1, std::memory_order_relaxed);
  else if (slot->open_regions > 0)
    --slot->open_regions;
}

}  // namespace cuptiprof
