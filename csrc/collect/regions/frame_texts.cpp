#include "collect/regions/frame_texts.h"

#include <algorithm>
#include <string>

#include "threads/frame_tree.h"

namespace cuptiprof {

uint32_t FrameTexts::line(Store& store, uint32_t node) {
  if (node == 0) return 0;
  if (is_written(node)) [[likely]]
    return x_lines[node] - 1;
  if (node >= x_lines.size()) x_lines.resize(std::max<size_t>(node + 1, 2 * x_lines.size()));
  std::vector<uint32_t> fresh;  // from the innermost; callers have lower numbers
  uint32_t at = node;
  for (; at != 0 && !is_written(at); at = g_frame_tree.parent(at)) fresh.push_back(at);
  uint32_t line = at != 0 ? x_lines[at] - 1 : 0;
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
    x_lines[fresh.back()] = line + 1;
  }
  return line;
}

uint32_t FrameTexts::module(Store& store, uint32_t number) {
  if (number == 0) return 0;
  const auto [found, is_new] = x_modules.try_emplace(number);
  if (is_new) found->second = store.text("(module " + std::to_string(number) + ")");
  return found->second;
}

}  // namespace cuptiprof
