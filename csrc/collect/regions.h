// The hot path of a region: two events in the calling thread's ring.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "collect/thread_slots.h"
#include "store/losses.h"

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
  kRegionIds = 4,       // launches are joined by external correlation
};
inline std::atomic<uint32_t> g_region_mode{0};
inline void set_region_mode(RegionMode bit, bool on) noexcept {
  on ? g_region_mode.fetch_or(bit) : g_region_mode.fetch_and(~uint32_t{bit});
}
inline std::atomic<uint64_t> g_region_overflow{0};

// Name -> process-wide ID; the same text gives the same ID. Thread-safe. After kMaxRegionNames distinct names
// the rest share the ID of "(other)": names that change with every step would otherwise grow without bound.
inline constexpr uint32_t kMaxRegionNames = 1 << 20;
uint32_t region_name_id(std::string_view name);
std::string region_name(uint32_t id);

// Wakes the decoder; async-signal-safe, never blocks.
void wake_decoder() noexcept;

// kRegionsWatched: what an entry and an exit do beside their event (live_regions.h).
void region_opened(ThreadSlot& slot, uint32_t name, uint64_t task, int64_t time) noexcept;
void region_closes(ThreadSlot& slot, uint32_t name, uint64_t task, int64_t time) noexcept;

// kRegionIds (external_correlation.h): an entry pushes its ID, right after its event, and an exit pops it,
// even after the session.
void push_region_id(ThreadSlot& slot) noexcept;
void pop_region_id(ThreadSlot& slot) noexcept;

// Called where `mode`, read by the caller, has kRegionsOn. Takes ownership of metadata. False: not recorded
// (the ring is full, which is counted); then the matching exit must not be recorded either.
inline bool enter_region(uint32_t mode, uint32_t name, RegionMetadata* metadata, uint64_t task) noexcept {
  ThreadSlot* slot = this_thread_slot();
  const int64_t time = now_ns();
  if (!slot || !slot->ring.push({time, task, metadata, name, EventKind::kEnter}, slot->open_regions + 1))
      [[unlikely]] {
    delete metadata;
    count(g_region_overflow);
    return false;
  }
  ++slot->open_regions;
  slot->ever_entered.store(true, std::memory_order_relaxed);
  if (slot->ring.pushed() >= slot->next_wake) [[unlikely]] {
    slot->next_wake = slot->ring.pushed() + kRingEvents / 4;
    wake_decoder();
  }
  if (mode & (kRegionsWatched | kRegionIds)) [[unlikely]] {
    if (mode & kRegionIds) push_region_id(*slot);
    if (mode & kRegionsWatched) region_opened(*slot, name, task, time);
  }
  return true;
}

// Room for this event was reserved by enter_region, so it cannot fail on the thread that entered.
inline void exit_region(uint32_t name, uint64_t task) noexcept {
  ThreadSlot* slot = this_thread_slot();
  if (!slot) [[unlikely]]
    return;
  const int64_t time = now_ns();
  if (g_region_mode.load(std::memory_order_relaxed) & kRegionsWatched) [[unlikely]]
    region_closes(*slot, name, task, time);
  if (slot->external_depth > 0) [[unlikely]]
    pop_region_id(*slot);
  if (!slot->ring.push({time, task, nullptr, name, EventKind::kExit})) [[unlikely]]
    count(g_region_overflow);
  if (slot->open_regions > 0) --slot->open_regions;
}

}  // namespace cuptiprof
