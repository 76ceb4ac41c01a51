// One pattern of a filter: literal text, a glob, or a regular expression. Never changes once made: any thread
// may match.
#pragma once
#include <string>
#include <string_view>
#include <variant>

#include "filter/glob.h"
#include "filter/regex.h"

namespace cuptiprof {

class Pattern {
 public:
  // Our own syntax: a glob, or "regex:" and a POSIX ERE. `what`: what the user calls the text. Throws
  // Error(kFilter).
  static Pattern parse(std::string_view text, std::string_view what);
  // ncu's: literal text, or "regex:" and an ERE.
  static Pattern parse_literal(std::string_view text, std::string_view what);
  static Pattern literal(std::string_view text);
  static Pattern regex(Regex regex, std::string_view text);

  // Literal and glob: the whole text. Regular expression: anywhere in it.
  [[nodiscard]] bool matches(std::string_view text) const noexcept;
  [[nodiscard]] bool is_regex() const noexcept { return std::holds_alternative<Regex>(x_matcher); }
  // As the user wrote it.
  [[nodiscard]] const std::string& text() const noexcept { return x_text; }

 private:
  using Matcher = std::variant<std::string, Glob, Regex>;
  Pattern(std::string_view text, Matcher matcher) : x_text(text), x_matcher(std::move(matcher)) {}

  std::string x_text;
  Matcher x_matcher;
};

inline constexpr std::string_view kRegexPrefix = "regex:";

}  // namespace cuptiprof
