// NVTX's start/end ranges that are open, of the whole process: they belong to no thread. For those who must
// know at a launch; written and read by any thread.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace cuptiprof {

class OpenStartEnd {
 public:
  static constexpr uint32_t kMax = 256;  // more at once are not seen at launches

  void started(uint64_t range, uint32_t label) noexcept {
    const std::lock_guard lock(x_mutex);
    if (x_count == kMax) return;
    x_open[x_count++] = {range, label};
    x_key.fetch_add(mixed(label), std::memory_order_relaxed);
  }
  void ended(uint64_t range) noexcept {
    const std::lock_guard lock(x_mutex);
    for (uint32_t i = 0; i < x_count; ++i) {
      if (x_open[i].range != range) continue;
      x_key.fetch_sub(mixed(x_open[i].label), std::memory_order_relaxed);
      x_open[i] = x_open[--x_count];
      return;
    }
  }
  void forget() noexcept {
    const std::lock_guard lock(x_mutex);
    x_count = 0;
    x_key.store(0, std::memory_order_relaxed);
  }

  // The same where ranges of the same labels are open. 0: none is.
  [[nodiscard]] uint64_t key() const noexcept { return x_key.load(std::memory_order_relaxed); }
  // Labels, in no order; `key` is theirs.
  [[nodiscard]] std::vector<uint32_t> labels(uint64_t* key) const {
    std::vector<uint32_t> out;
    const std::lock_guard lock(x_mutex);
    for (uint32_t i = 0; i < x_count; ++i) out.push_back(x_open[i].label);
    *key = x_key.load(std::memory_order_relaxed);
    return out;
  }

 private:
  static uint64_t mixed(uint32_t label) noexcept {
    uint64_t h = (label + 1) * 0x9e3779b97f4a7c15ull;
    return (h ^ h >> 31) * 0xbf58476d1ce4e5b9ull;
  }
  struct Range {
    uint64_t range;
    uint32_t label;
  };
  mutable std::mutex x_mutex;  // guards the ranges, and writing the key
  std::array<Range, kMax> x_open{};
  uint32_t x_count = 0;
  std::atomic<uint64_t> x_key{0};
};

inline constinit OpenStartEnd g_open_start_end;

}  // namespace cuptiprof
