#include "filter/line_pattern.h"

#include <charconv>

#include "base/error.h"
#include "filter/filter_error.h"

namespace cuptiprof {
namespace {

// What stands before a last ":42"; the whole text where there is none.
std::string_view name_of(std::string_view text, std::optional<uint32_t>* line) {
  const size_t colon = text.rfind(':');
  if (colon == text.npos || colon == 0) return text;
  uint32_t number = 0;
  const char* end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data() + colon + 1, end, number);
  if (error != std::errc{} || after != end) return text;
  *line = number;
  return text.substr(0, colon);
}

std::string_view name_of(std::string_view text) {
  std::optional<uint32_t> line;
  return name_of(text, &line);
}

}  // namespace

LinePattern::LinePattern(std::string_view text, std::string_view what)
    : x_whole(name_of(text)),
      x_end_of_file("*/" + std::string(name_of(text))),
      x_end_of_function("*." + std::string(name_of(text))) {
  if (text.empty())
    throw Error(ErrorKind::kFilter, "an empty " + std::string(what),
                "Name a file, a line of it, or a function: 'train.py', 'train.py:42', 'Model.forward'.");
  name_of(text, &x_line);
}

bool LinePattern::matches(const LineView& at) const noexcept {
  if (x_whole.matches(at.file) || x_end_of_file.matches(at.file)) return !x_line || *x_line == at.line;
  return !x_line && (x_whole.matches(at.function) || x_end_of_function.matches(at.function));
}

}  // namespace cuptiprof
