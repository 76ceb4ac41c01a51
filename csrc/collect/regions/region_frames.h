// A region that was handed on, as long as somebody may still work for it. Decoder thread only.
#pragma once
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

namespace cuptiprof {

struct RegionFrame {
  uint32_t node = 0;
  uint32_t instance = 0;
  uint16_t depth = 0;
  int64_t end = std::numeric_limits<int64_t>::max();  // stamp at which it was left
  std::shared_ptr<RegionFrame> parent;

  RegionFrame() = default;
  RegionFrame(const RegionFrame&) = delete;
  RegionFrame& operator=(const RegionFrame&) = delete;
  // Deeply nested ones go one after the other, not each inside the last one's destructor.
  ~RegionFrame() {
    auto next = std::move(parent);
    while (next && next.use_count() == 1) next = std::exchange(next->parent, nullptr);
  }
};

// The nearest one that was still open at this stamp; null: none.
inline const RegionFrame* open_frame(const std::shared_ptr<RegionFrame>& frame, int64_t stamp) {
  const RegionFrame* f = frame.get();
  while (f && f->end <= stamp) f = f->parent.get();
  return f;
}

}  // namespace cuptiprof
