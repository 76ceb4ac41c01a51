// The frames of a stack as a filter sees them.
#pragma once
#include <vector>

#include "filter/line_pattern.h"
#include "threads/frame_tree.h"

namespace cuptiprof {

// Of a node of g_frame_tree, the innermost first; the views live until the tree forgets.
inline std::vector<LineView> lines_of_stack(uint32_t node) {
  std::vector<LineView> out;
  for (; node != 0; node = g_frame_tree.parent(node)) {
    const FramePlace place = g_frame_tree.place(node);
    out.push_back({place.file, place.function, place.line});
  }
  return out;
}

}  // namespace cuptiprof
