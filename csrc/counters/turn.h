// One thread at a time between the entry of a counted launch and its exit, across the CUDA call: ranges of
// two threads would otherwise nest. Not a mutex: it is never waited for without a limit.
#pragma once
#include <time.h>

#include <atomic>
#include <chrono>

namespace cuptiprof {

class Turn {
 public:
  // False: another thread kept it for all of `patience`.
  [[nodiscard]] bool take(std::chrono::milliseconds patience) noexcept {
    if (!x_taken.exchange(true, std::memory_order_acquire)) return true;
    const auto deadline = std::chrono::steady_clock::now() + patience;
    const timespec pause{0, 20'000};
    do {
      nanosleep(&pause, nullptr);
      if (!x_taken.exchange(true, std::memory_order_acquire)) return true;
    } while (std::chrono::steady_clock::now() < deadline);
    return false;
  }
  void give_back() noexcept { x_taken.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> x_taken{false};
};

}  // namespace cuptiprof
