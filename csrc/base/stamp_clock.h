// What events are stamped with. Most of what an event costs is the reading of a clock, so where the kernel
// keeps its own time by the processor's cycle counter, stamps are cycles: a third of clock_gettime's price.
// Whoever takes events out compares stamps as they are, and makes times of them by readings of both clocks
// around them.
#pragma once
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace cuptiprof {

// In stamps that are cycles; the others are times of the run clock.
inline constexpr int64_t kCycles = int64_t{1} << 62;

inline std::atomic<bool> g_stamps_are_cycles{false};

// Where the run clock's times come from; null: the monotonic clock, which alone can be known by cycles.
void set_clock_source(ClockSource source) noexcept;

// The counter is not waited for: a stamp may be some ten nanoseconds older than what happened before it on
// another thread. On one thread they are in order.
[[gnu::always_inline]] inline int64_t read_stamp() noexcept {
#if defined(__x86_64__)
  if (g_stamps_are_cycles.load(std::memory_order_relaxed)) [[likely]]
    return static_cast<int64_t>(__rdtsc() | static_cast<uint64_t>(kCycles));
#endif
  return now_ns();
}

class StampClock {
 public:
  // May wait a millisecond, in which the counter is compared with the clock.
  StampClock() noexcept;

  // Compares again; the stamp of now.
  int64_t look() noexcept;

  // The time of a stamp, to some ten nanoseconds: of one read since the last look but one. Stamps of the
  // other kind, from before the clock was changed, have the time of the last look.
  int64_t run_clock(int64_t stamp) const noexcept {
    if ((stamp ^ x_now.stamp) & kCycles) return x_now.time;
    if (!(stamp & kCycles)) return stamp;
    return x_to.time + static_cast<int64_t>(static_cast<double>(stamp - x_to.stamp) * x_rate);
  }
  // Not after the last look, or of the other kind.
  bool is_past(int64_t stamp) const noexcept {
    return stamp <= x_now.stamp || ((stamp ^ x_now.stamp) & kCycles);
  }

 private:
  struct Reading {
    int64_t stamp = 0, time = 0;
  };
  static Reading read() noexcept;
  static const Reading g_first;
  void go_from(const Reading& from) noexcept;

  Reading x_now;
  Reading x_from, x_to;  // far enough apart to know the rate
  double x_rate = 0;     // ns a cycle
};

}  // namespace cuptiprof
