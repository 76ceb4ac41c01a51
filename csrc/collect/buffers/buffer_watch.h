// Notices that another client of CUPTI took the place of our buffers: cuptiActivityRegisterCallbacks knows
// one client, the last, and nothing tells the one before.
//
// A launch leaves records, and records need a buffer. CUPTI was just asked for every buffer it can give back;
// when it holds none of ours, launches go on, and still it asks for none, it asks somebody else.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cuptiprof {

class BufferWatch {
 public:
  // Control path, while nobody looks.
  void begin() noexcept {
    x_launches = x_requests = 0;
    x_were_due = false;
    x_taken_at.store(0, std::memory_order_relaxed);
  }

  // Decoder thread, some time after the last look. requests: for buffers, ever; held: of ours by CUPTI.
  void look(int64_t now, uint64_t launches, uint64_t requests, size_t held) noexcept {
    const bool due = launches > x_launches && requests == x_requests && held == 0;
    // Twice: the first time a launch may be on its way, which has no record yet.
    if (due && x_were_due && x_taken_at.load(std::memory_order_relaxed) == 0)
      x_taken_at.store(now, std::memory_order_relaxed);
    x_were_due = due;
    x_launches = launches;
    x_requests = requests;
  }

  // When it was noticed, run clock; 0: it was not.
  int64_t taken_at() const noexcept { return x_taken_at.load(std::memory_order_relaxed); }

 private:
  uint64_t x_launches = 0;
  uint64_t x_requests = 0;
  bool x_were_due = false;
  std::atomic<int64_t> x_taken_at{0};
};

}  // namespace cuptiprof
