// A pattern of modules=: which modules of PyTorch launches are made in.
#pragma once
#include <string>
#include <string_view>

#include "filter/pattern.h"

namespace cuptiprof {

// "layers.3.attn", "*.attn", "Net.head": a module by its path, with or without the class of the outermost
// one, or by the end of the path. What is called from a module is in it. Wildcards are those of a glob;
// "regex:..." is looked for in the path.
class ModulePattern {
 public:
  ModulePattern(std::string_view text, std::string_view what);
  // `path`: "Net.layers.3.attn"; empty: no module runs.
  [[nodiscard]] bool matches(std::string_view path) const noexcept;

 private:
  Pattern x_whole, x_end;
};

// The path without what tells models of one class apart: "Net#2.head" is "Net.head".
std::string without_ordinal(std::string_view path);

}  // namespace cuptiprof
