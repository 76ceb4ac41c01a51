#include "filter/module_pattern.h"

#include "base/error.h"

namespace cuptiprof {

ModulePattern::ModulePattern(std::string_view text, std::string_view what)
    : x_whole(Pattern::parse(text, what)),
      x_end(x_whole.is_regex() ? x_whole : Pattern::parse("*." + std::string(text), what)) {
  if (text.empty())
    throw Error(ErrorKind::kFilter, "an empty " + std::string(what),
                "Name a module: 'layers.3.attn', '*.attn', 'Net.head'.");
}

bool ModulePattern::matches(std::string_view path) const noexcept {
  if (path.empty()) return false;
  if (x_whole.is_regex()) return x_whole.matches(path);
  for (size_t end = path.find('.'); end != path.npos; end = path.find('.', end + 1))
    if (const auto around = path.substr(0, end); x_whole.matches(around) || x_end.matches(around))
      return true;
  return x_whole.matches(path) || x_end.matches(path);
}

std::string without_ordinal(std::string_view path) {
  const std::string_view root = path.substr(0, path.find('.'));
  const size_t mark = root.rfind('#');
  std::string out(path);
  if (mark != root.npos && mark + 1 < root.size() &&
      root.find_first_not_of("0123456789", mark + 1) == root.npos)
    out.erase(mark, root.size() - mark);
  return out;
}

}  // namespace cuptiprof
