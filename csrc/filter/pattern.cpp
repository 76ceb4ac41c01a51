#include "filter/pattern.h"

#include "filter/filter_error.h"

namespace cuptiprof {

Pattern Pattern::parse(std::string_view text, std::string_view what) {
  if (text.starts_with(kRegexPrefix))
    return {text, Regex(text.substr(kRegexPrefix.size()), what, text, kRegexPrefix.size())};
  if (text.empty())
    throw_filter_error(what, text, 0, "empty pattern", "Write '*' for everything, or leave it out.");
  return {text, Glob(text)};
}

Pattern Pattern::parse_literal(std::string_view text, std::string_view what) {
  if (text.starts_with(kRegexPrefix))
    return {text, Regex(text.substr(kRegexPrefix.size()), what, text, kRegexPrefix.size())};
  if (text.empty()) throw_filter_error(what, text, 0, "empty name", "Leave it out to select every kernel.");
  return literal(text);
}

Pattern Pattern::literal(std::string_view text) { return {text, std::string(text)}; }

Pattern Pattern::regex(Regex regex, std::string_view text) { return {text, std::move(regex)}; }

bool Pattern::matches(std::string_view text) const noexcept {
  if (const auto* r = std::get_if<Regex>(&x_matcher)) return r->found_in(text);
  if (const auto* g = std::get_if<Glob>(&x_matcher)) return g->matches(text);
  return *std::get_if<std::string>(&x_matcher) == text;
}

}  // namespace cuptiprof
