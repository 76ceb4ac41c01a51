// The named ranges that are open when a kernel is launched: regions, NVTX ranges and operators of PyTorch of
// the launching thread.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "filter/pattern.h"

namespace cuptiprof {

using NameSpan = std::span<const std::string_view>;

// Names of one NVTX domain; "" is the default domain.
struct DomainRanges {
  std::string_view domain;
  NameSpan names;  // push/pop: bottom of the stack first; start/end: any order
};

// What a filter may ask of a launch's ranges; views only.
struct RangeView {
  std::string_view region_path;  // "fwd/attn"; empty: outside any region
  NameSpan path;                 // its components (split_region_path), outermost first
  NameSpan regions;              // those of them that are regions of ours
  std::span<const DomainRanges> push_pop, start_end;
  std::string_view operator_path;  // "aten::linear/aten::addmm"
  NameSpan operators;              // its components, outermost first
};

// "a/b\/c" -> {"a", "b/c"}. The collector writes '/' inside a name as "\/" and '\' as "\\".
std::vector<std::string> split_region_path(std::string_view path);

// A pattern of regions=, exclude_regions= or operators=: selects a launch that is inside a matching one.
// A glob without '/' is compared with the names of the open ones, one with '/' with the path of each of
// them; "regex:" searches the path of the innermost.
class RegionPattern {
 public:
  RegionPattern(std::string_view text, std::string_view what);
  // Of what is open: its path and the names in it.
  [[nodiscard]] bool matches(std::string_view path, NameSpan names) const noexcept;
  [[nodiscard]] const std::string& text() const noexcept { return x_pattern.text(); }

 private:
  Pattern x_pattern;
  bool x_on_path;  // a glob with '/'
};

// One --nvtx-include or --nvtx-exclude expression.
class NvtxExpression {
 public:
  // Throws Error(kFilter).
  explicit NvtxExpression(std::string_view text);
  // Regions count as push/pop ranges of the default domain: a stack of their own, beside NVTX's.
  [[nodiscard]] bool matches(const RangeView& ranges) const noexcept;
  [[nodiscard]] const std::string& text() const noexcept { return x_text; }

 private:
  enum class Kind : unsigned char { kName, kOne, kMany };  // a range, '+', '*'
  struct Token {
    Kind kind;
    std::optional<Pattern> name;
  };
  [[nodiscard]] bool stack_matches(NameSpan stack) const noexcept;
  [[nodiscard]] bool domain_matches(std::string_view domain) const noexcept;
  [[nodiscard]] bool all_open(NameSpan names) const noexcept;

  std::string x_text;
  std::optional<Pattern> x_domain;  // none: the default domain
  bool x_push_pop = false;
  // Push/pop: with a leading or trailing '*' where the expression is not anchored.
  std::vector<Token> x_tokens;
};

}  // namespace cuptiprof
