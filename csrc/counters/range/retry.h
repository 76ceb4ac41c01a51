// When a profiler that was busy is asked for once more: others use the counters in turns (DCGM), and a launch
// must not wait for them.
#pragma once
#include <cupti_result.h>

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace cuptiprof {

class Retry {
 public:
  [[nodiscard]] bool is_due(int refused) const noexcept {
    return refused == CUPTI_ERROR_HARDWARE_BUSY && now_ns() >= x_at;
  }
  // It was refused now.
  void wait() noexcept {
    x_wait = std::min<int64_t>(x_wait * 2, 640'000'000);
    x_at = now_ns() + x_wait;
  }

 private:
  int64_t x_wait = 5'000'000;  // ns
  int64_t x_at = 0;
};

}  // namespace cuptiprof
