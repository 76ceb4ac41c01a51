// When cudaProfilerStart and Stop opened and closed the window of collection: samples are read some time
// after, and a sampler goes on until the thread that reads it has seen that the window is closed.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace cuptiprof {

class WindowTimes {
 public:
  explicit WindowTimes(bool open) noexcept : x_first(open) {}

  // In the callback of the call that opens or closes it.
  void changes(int64_t time, bool open) noexcept {
    const std::lock_guard lock(x_mutex);
    x_changes[x_count++ % kMost] = {time, open};
  }
  [[nodiscard]] bool is_open(int64_t time) const noexcept {
    const std::lock_guard lock(x_mutex);
    for (size_t i = x_count; i != 0 && x_count - i < kMost; --i)
      if (const Change& c = x_changes[(i - 1) % kMost]; c.time <= time) return c.open;
    return x_count > kMost || x_first;  // of a window too long ago it is taken to have been open
  }

 private:
  static constexpr size_t kMost = 64;  // between two looks of the thread that reads
  struct Change {
    int64_t time;  // run clock
    bool open;
  };
  mutable std::mutex x_mutex;  // guards the rest; held for a few instructions
  std::array<Change, kMost> x_changes{};
  size_t x_count = 0;
  const bool x_first;  // before the first of them
};

}  // namespace cuptiprof
