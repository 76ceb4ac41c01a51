// A counted launch has its context for itself: what another thread launched meanwhile would be counted with
// it.
//
// Two sides that see each other (both orders are sequentially consistent): an ordinary launch says where it
// is going, then looks whether that context is being measured; a measurement takes the context, then waits
// until nobody is on the way into it. Neither waits without a limit; who cannot wait longer goes on, and the
// measurement knows that it was disturbed.
#pragma once
#include <atomic>
#include <chrono>

namespace cuptiprof {

class Exclusion {
 public:
  // False: a launch of another thread did not end within `patience`; nothing is taken then.
  bool take(const void* context, std::chrono::milliseconds patience) noexcept;
  // False: others launched meanwhile.
  bool give_back() noexcept {
    x_context.store(nullptr);
    return !x_disturbed.load();
  }

  // Around an ordinary launch; `place` is its thread's.
  void enter(std::atomic<const void*>& place, const void* context,
             std::chrono::milliseconds patience) noexcept;
  static void leave(std::atomic<const void*>& place) noexcept {
    place.store(nullptr, std::memory_order_release);
  }

  // A profiler stays started between counted launches: every kernel of its context becomes a range, so that
  // an ordinary launch has it stopped first.
  void set_resident(bool yes) noexcept { x_resident.store(yes); }
  [[nodiscard]] bool is_resident() const noexcept { return x_resident.load(); }

  void arm(bool on) noexcept {
    x_context.store(nullptr);
    x_resident.store(false);
    x_armed.store(on);
  }
  [[nodiscard]] bool is_armed() const noexcept { return x_armed.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> x_armed{false};
  std::atomic<bool> x_disturbed{false};
  std::atomic<bool> x_resident{false};
  std::atomic<const void*> x_context{nullptr};  // the one that is being measured
};

inline constinit Exclusion g_exclusion;

}  // namespace cuptiprof
