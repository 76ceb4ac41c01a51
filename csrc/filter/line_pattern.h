// A pattern of lines=: which lines of the user's program launches are made from.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "filter/glob.h"

namespace cuptiprof {

// One frame of a launch's Python stack; views only.
struct LineView {
  std::string_view file, function;
  uint32_t line = 0;
};

// "train.py", "pkg/train.py:42", "Model.forward": a file by its path or the end of it, with or without a
// line, or a function by its qualified name or the end of it. Wildcards are those of a glob.
class LinePattern {
 public:
  LinePattern(std::string_view text, std::string_view what);
  [[nodiscard]] bool matches(const LineView& at) const noexcept;

 private:
  std::optional<uint32_t> x_line;
  Glob x_whole, x_end_of_file, x_end_of_function;
};

}  // namespace cuptiprof
