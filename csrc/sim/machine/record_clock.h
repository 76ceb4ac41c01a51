// The clock that records carry: Linux' CLOCK_REALTIME, or what a client registered; under the virtual clock
// the machine's own time.
#pragma once
#include <cupti_activity.h>
#include <time.h>

#include <atomic>
#include <cstdint>

namespace sim {

inline uint64_t read_clock(clockid_t id) {
  timespec t;
  clock_gettime(id, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000ull + static_cast<uint64_t>(t.tv_nsec);
}
inline uint64_t monotonic() { return read_clock(CLOCK_MONOTONIC); }

// Set by control calls, read by every thread that writes a record.
class RecordClock {
 public:
  RecordClock() { reset(false); }
  // As in a fresh process.
  void reset(bool virtual_clock);
  // False: not under the virtual clock. A second registration spoils the next record of GPU work.
  bool set(CUpti_TimestampCallbackFunc function);

  // cuptiGetTimestamp; `own`: the machine's time.
  uint64_t timestamp(uint64_t own) const;
  // The machine's time as records carry it.
  uint64_t of(uint64_t own) const {
    return own + static_cast<uint64_t>(x_offset.load(std::memory_order_relaxed));
  }
  bool changes_records() const {
    return x_offset.load(std::memory_order_relaxed) != 0 || x_spoils.load(std::memory_order_relaxed);
  }
  // A record, written in the machine's time, gets the clock's. Unknown times (0) stay unknown.
  void stamp(CUpti_Activity* record);

 private:
  bool x_virtual = false;
  std::atomic<CUpti_TimestampCallbackFunc> x_function{nullptr};
  std::atomic<int64_t> x_offset{0};   // ns: this clock's reading less the machine's
  std::atomic<bool> x_spoils{false};  // the next record of GPU work gets times that cannot be
};

}  // namespace sim
