// Python's stacks in tables: a row of `stacks` for each frame that some row needs, and the text of its line.
// Decoder thread only.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "store/store.h"

namespace cuptiprof {

class FrameTexts {
 public:
  // ID in `store` of "file:line function" of the innermost frame of the user's code in the stack of this node
  // of g_frame_tree; 0: it has none. The frames of the stack become rows of the store, each once.
  uint32_t line(Store& store, uint32_t node);
  // The same for a module of g_module_table, by its number: "(module 7)". What it is called is known when the
  // session ends (module_names), and is put in its place then.
  uint32_t module(Store& store, uint32_t number);
  // Texts of the store that its rows may have no longer and that are remembered here: lines of frames whose
  // rows are written once.
  std::vector<uint32_t> texts() const {
    std::vector<uint32_t> ids;
    for (const uint32_t line : x_lines)
      if (line != 0) ids.push_back(line - 1);
    return ids;
  }
  // The store gave its texts other IDs; those of texts() among them.
  void renumber_texts(const std::vector<uint32_t>& now) {
    for (uint32_t& line : x_lines)
      if (line != 0) line = now[line - 1] + 1;
    x_modules.clear();
  }
  // A new store has its own strings and rows.
  void forget_string_ids() {
    x_lines.clear();
    x_modules.clear();
  }

 private:
  bool is_written(uint32_t node) const { return node < x_lines.size() && x_lines[node] != 0; }

  std::unordered_map<uint32_t, uint32_t> x_modules;
  std::vector<uint32_t> x_lines;  // by node: ID of its text + 1; 0: its row is not written
};

}  // namespace cuptiprof
