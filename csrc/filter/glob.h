// Shell-style wildcards with the rules of Python's fnmatch.fnmatchcase: '*', '?', '[a-z]', '[!a]', whole
// text, case-sensitive, '*' crosses '/', and no escape character (write '[*]'). Never changes once made: any
// thread may match.
#pragma once
#include <string_view>
#include <utility>
#include <vector>

namespace cuptiprof {

class Glob {
 public:
  explicit Glob(std::string_view pattern);
  // O(text x pattern) at worst, no allocation.
  [[nodiscard]] bool matches(std::string_view text) const noexcept;

 private:
  enum class Kind : unsigned char { kChar, kAny, kStar, kSet };
  struct Token {
    Kind kind;
    bool negated = false;
    char32_t code_point = 0;
    unsigned first_range = 0, last_range = 0;  // in x_ranges
  };
  [[nodiscard]] bool token_matches(const Token& token, char32_t c) const noexcept;

  std::vector<Token> x_tokens;
  std::vector<std::pair<char32_t, char32_t>> x_ranges;
};

}  // namespace cuptiprof
