// The run clock: that of all times in a result, and through its timestamp callback CUPTI's.
#pragma once
#include <time.h>

#include <atomic>
#include <cstdint>

namespace cuptiprof {

// CLOCK_MONOTONIC: never steps, and equals Python's time.perf_counter_ns(), so users can compare the two.
inline int64_t monotonic_ns() noexcept {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

inline int64_t unix_ns() noexcept {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

// A simulated device may have a clock of its own (a replay's virtual time); null: the monotonic clock. Set by
// set_clock_source.
using ClockSource = int64_t (*)();
inline std::atomic<ClockSource> g_clock_source{nullptr};

inline int64_t now_ns() noexcept {
  ClockSource source = g_clock_source.load(std::memory_order_relaxed);
  return source ? source() : monotonic_ns();
}

}  // namespace cuptiprof
