// POSIX extended regular expressions through libc: no recursion on the text, unlike std::regex, which
// overflows the stack on the names of real kernels. Bytes, not characters: '.' is one byte, whatever the
// locale.
#pragma once
#include <regex.h>

#include <cstddef>
#include <memory>
#include <string_view>

namespace cuptiprof {

class Regex {
 public:
  // `ere` is a part of `whole`, from byte `position` on, which errors name. Throws Error(kFilter).
  Regex(std::string_view ere, std::string_view what, std::string_view whole, size_t position);
  Regex(std::string_view ere, std::string_view what) : Regex(ere, what, ere, 0) {}

  // True if the expression matches somewhere in the text. Linear in the text.
  [[nodiscard]] bool found_in(std::string_view text) const noexcept;
  // True if it matches the whole text.
  [[nodiscard]] bool matches_all_of(std::string_view text) const noexcept;

 private:
  // Shared because copies of a filter are cheap and regexec only reads (glibc takes its own lock inside).
  std::shared_ptr<const regex_t> x_search, x_whole;
};

}  // namespace cuptiprof
