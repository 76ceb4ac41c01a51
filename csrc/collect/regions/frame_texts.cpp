#include "collect/regions/frame_texts.h"

#include <vector>

#include "threads/frame_tree.h"

namespace cuptiprof {

uint32_t FrameTexts::line(Store& store, uint32_t node) {
  std::vector<uint32_t> fresh;  // from the innermost
  uint32_t at = node;
  for (; at != 0 && !x_lines.contains(at); at = g_frame_tree.parent(at)) fresh.push_back(at);
  uint32_t line = at != 0 ? x_lines.at(at) : 0;
  for (; !fresh.empty(); fresh.pop_back()) {
    const FramePlace place = g_frame_tree.place(fresh.back());
    rows::stacks row{};
    row.id = fresh.back();
    row.parent = place.parent;
    row.line = place.line;
    row.first_line = place.first_line;
    row.file = store.text(place.file);
    row.function = store.text(place.function);
    row.is_user = place.is_user;
    store.append(row);
    if (place.is_user)
      line = store.text(std::string(place.file) + ":" + std::to_string(place.line) + " " +
                        std::string(place.function));
    x_lines.emplace(fresh.back(), line);
  }
  return line;
}

}  // namespace cuptiprof
