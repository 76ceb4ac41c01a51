// One thread at a time between the entry of a counted launch and its exit, across the CUDA call: ranges of
// two threads would otherwise nest. Not a mutex: it is never waited for without a limit.
#pragma once
#include <time.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace cuptiprof {

// What a control call waits for its turn: a counted launch may hang.
inline constexpr std::chrono::milliseconds kControlPatience{2000};

class Turn {
 public:
  // False: another thread kept it for all of `patience`. Whoever kept it that long is not waited for again.
  [[nodiscard]] bool take(std::chrono::milliseconds patience) noexcept {
    if (try_take()) return true;
    const uint64_t holder = x_taken_times.load();
    if (patience.count() == 0 || x_gave_up_on.load() == holder) return false;
    const auto deadline = std::chrono::steady_clock::now() + patience;
    const timespec pause{0, 20'000};
    do {
      nanosleep(&pause, nullptr);
      if (try_take()) return true;
    } while (std::chrono::steady_clock::now() < deadline);
    if (x_taken_times.load() == holder) x_gave_up_on.store(holder);
    return false;
  }
  void give_back() noexcept { x_taken.store(false, std::memory_order_release); }

 private:
  bool try_take() noexcept {
    if (x_taken.exchange(true, std::memory_order_acquire)) return false;
    x_taken_times.fetch_add(1);
    return true;
  }
  std::atomic<bool> x_taken{false};
  std::atomic<uint64_t> x_taken_times{0}, x_gave_up_on{0};
};

// The turn for the length of a scope.
class HeldTurn {
 public:
  HeldTurn(Turn& turn, std::chrono::milliseconds patience) noexcept
      : x_turn(turn), x_held(turn.take(patience)) {}
  ~HeldTurn() {
    if (x_held) x_turn.give_back();
  }
  HeldTurn(const HeldTurn&) = delete;
  HeldTurn& operator=(const HeldTurn&) = delete;
  explicit operator bool() const noexcept { return x_held; }

 private:
  Turn& x_turn;
  const bool x_held;
};

}  // namespace cuptiprof
