// Regions as they happen, for counters: the path a launch is under, and entries and exits told to an
// observer.
#pragma once
#include <chrono>
#include <cstdint>

#include "launch/observers.h"
#include "threads/thread_slots.h"

namespace cuptiprof {

// Names of the regions a launch on this thread and task belongs to, outermost first, by the rule of
// RegionTracker: its own, inside those it was handed as far as they are open; on torch's autograd threads
// inside those of the thread that called backward. `names` has room for OpenRegions::kMax, as has `regions`
// (their IDs) unless null. Returns how many.
uint32_t live_region_path(const ThreadSlot& slot, uint64_t task, uint32_t* names,
                          uint64_t* regions = nullptr) noexcept;

// Who is told of entries and exits; null: nobody.
void set_region_observer(RegionObserver* observer) noexcept;
// How an entry learns the calling thread's context; before the first observer.
void set_context_source(CUcontext (*current_context)() noexcept) noexcept;

// Until no thread is inside an observer, at most `patience`. False: one still is. Launches that hang in
// another observer than this one are not waited for again.
bool wait_for_observers(std::chrono::milliseconds patience, const LaunchObserver* observer) noexcept;

}  // namespace cuptiprof
