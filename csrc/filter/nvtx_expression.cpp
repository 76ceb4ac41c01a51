// The grammar of ncu's NVTX expressions:
//   expression := ["regex:"] [domain "@"] ranges
//   ranges     := name {"," name}                                                     start/end: all are open
//               | ["["] name {"/" ("*" | "+" | name)} ["/"] ["]"]                     push/pop: the stack
// Push/pop ranges are told by a '/', a '[' at the beginning or a ']' at the end. In a regex any other bracket
// is the expression's own; one at the very beginning or end is written "/[", "/]", and that slash means
// nothing else. A backslash takes a quantifier's meaning away.
#include <algorithm>

#include "filter/filter_error.h"
#include "filter/perl_spellings.h"
#include "filter/ranges.h"

namespace cuptiprof {
namespace {

constexpr std::string_view kWhat = "NVTX expression";
constexpr std::string_view kQuantifiers = "@,[]/*+\\";
constexpr std::string_view kSpecialInEre = "[]*+\\";

// The expression as characters that know whether they were escaped and where they stood.
struct Char {
  char c;
  bool escaped;
  size_t at;
};

struct Parser {
  std::string_view text;
  bool regex = false;

  [[noreturn]] void fail(size_t at, std::string_view problem, std::string_view hint) const {
    throw_filter_error(kWhat, text, at, problem, hint);
  }

  std::vector<Char> lex() const {
    std::vector<Char> out;
    for (size_t i = regex ? kRegexPrefix.size() : 0; i < text.size(); ++i) {
      if (text[i] == '\\' && i + 1 < text.size()) {
        const char next = text[i + 1];
        // In a regular expression the backslash of an ERE operator is the ERE's own and stays.
        if (regex && (kQuantifiers.find(next) == std::string_view::npos ||
                      kSpecialInEre.find(next) != std::string_view::npos)) {
          out.push_back({'\\', true, i});
          out.push_back({next, true, ++i});
          continue;
        }
        if (kQuantifiers.find(next) != std::string_view::npos) {
          out.push_back({next, true, ++i});
          continue;
        }
      }
      out.push_back({text[i], false, i});
    }
    return out;
  }

  // One domain or range name.
  Pattern name(std::span<const Char> chars) const {
    std::string value;
    for (const Char& c : chars) {
      if (!c.escaped && !regex && kQuantifiers.find(c.c) != std::string_view::npos && c.c != '\\')
        fail(c.at, "a quantifier inside a name",
             "Write a backslash before each of @ , [ ] / * + that belongs to a name; use regex: for "
             "patterns.");
      value += c.c;
    }
    if (!regex) return Pattern::literal(value);
    check_brackets(chars, value);
    return Pattern::regex(Regex(value, kWhat, text, chars.front().at), value);
  }

  // Half a bracket expression: its other half was taken for the end of the stack, or a separator stood in it.
  void check_brackets(std::span<const Char> chars, std::string_view value) const {
    constexpr std::string_view kHint =
        "Write a bracket expression at the very beginning or end of the ranges '/[0-9]A', 'A[0-9/]', the "
        "separators , and / in one '\\,', '\\/', and a bracket that is a character '\\[', '\\]'.";
    for (size_t i = 0; i < value.size(); ++i) {
      if (value[i] == '\\') {
        ++i;
      } else if (value[i] == '[') {
        const size_t end = bracket_end(value, i);
        if (end == std::string_view::npos) fail(chars[i].at, "unmatched [", kHint);
        i = end - 1;
      } else if (value[i] == ']') {
        fail(chars[i].at, "unmatched ]", kHint);
      }
    }
  }
};

bool is(const Char& c, char wanted) { return c.c == wanted && !c.escaped; }

}  // namespace

NvtxExpression::NvtxExpression(std::string_view text) : x_text(text) {
  Parser parser{text, text.starts_with(kRegexPrefix)};
  const std::vector<Char> all = parser.lex();
  std::span<const Char> rest(all);

  const auto at_sign = std::find_if(rest.begin(), rest.end(), [](const Char& c) { return is(c, '@'); });
  if (at_sign != rest.end()) {
    const auto length = static_cast<size_t>(at_sign - rest.begin());
    if (length == 0)
      parser.fail(at_sign->at, "no domain before @", "Leave the @ out for the default domain.");
    const auto second = std::find_if(at_sign + 1, rest.end(), [](const Char& c) { return is(c, '@'); });
    if (second != rest.end())
      parser.fail(second->at, "a second @", "One domain per expression; write \\@ for the character.");
    x_domain = parser.name(rest.first(length));
    rest = rest.subspan(length + 1);
  }
  if (rest.empty())
    parser.fail(text.size(), "no range name", "Name a range: 'A' (start/end), 'A/' (push/pop), 'Domain@A/'.");

  const bool bottom = is(rest.front(), '[');
  if (bottom) rest = rest.subspan(1);
  const auto slash_at = [&](size_t i) { return parser.regex && i < rest.size() && is(rest[i], '/'); };
  const bool top = !rest.empty() && is(rest.back(), ']') && !slash_at(rest.size() - 2);
  if (top) rest = rest.first(rest.size() - 1);
  // The slash of "/[" and "/]" is no separator.
  std::vector<Char> ranges(rest.begin(), rest.end());
  if (slash_at(0) && rest.size() > 1 && is(rest[1], '[')) ranges.erase(ranges.begin());
  if (slash_at(rest.size() - 2) && is(rest.back(), ']')) ranges.erase(ranges.end() - 2);
  rest = ranges;
  x_push_pop = bottom || top || std::any_of(rest.begin(), rest.end(), [&](const Char& c) {
                 return is(c, '/') || (!parser.regex && (is(c, '[') || is(c, ']')));
               });
  const auto take = [&](char separator, auto&& add) {
    while (true) {
      const auto end =
          std::find_if(rest.begin(), rest.end(), [&](const Char& c) { return is(c, separator); });
      const bool more = end != rest.end();
      const auto length = static_cast<size_t>(end - rest.begin());
      if (length == 0)
        parser.fail(more ? end->at : text.size(), "empty range name",
                    "Ranges without a name cannot be matched.");
      add(rest.first(length));
      if (!more) return;
      rest = rest.subspan(length + 1);
    }
  };
  if (!x_push_pop) {
    take(',', [&](std::span<const Char> chars) { x_tokens.push_back({Kind::kName, parser.name(chars)}); });
    return;
  }

  if (rest.size() > 1 && is(rest.back(), '/')) rest = rest.first(rest.size() - 1);  // "A/"
  if (rest.empty()) parser.fail(text.size(), "no range name", "Name a range, e.g. '[A' or 'A]'.");

  if (!bottom) x_tokens.push_back({Kind::kMany, {}});
  const size_t first_token = x_tokens.size();
  const size_t first_at = rest.front().at, last_at = rest.back().at;
  take('/', [&](std::span<const Char> chars) {
    if (chars.size() == 1 && (is(chars[0], '*') || is(chars[0], '+')))
      x_tokens.push_back({chars[0].c == '*' ? Kind::kMany : Kind::kOne, {}});
    else
      x_tokens.push_back({Kind::kName, parser.name(chars)});
  });
  constexpr std::string_view kBetween = "* and + stand between two range names: A/*/B, A/+/B.";
  if (x_tokens[first_token].kind != Kind::kName)
    parser.fail(first_at, "a quantifier where a range name should be", kBetween);
  if (x_tokens.back().kind != Kind::kName)
    parser.fail(last_at, "a quantifier where a range name should be", kBetween);
  if (!top) x_tokens.push_back({Kind::kMany, {}});
}

bool NvtxExpression::domain_matches(std::string_view domain) const noexcept {
  return x_domain ? x_domain->matches(domain) : domain.empty();
}

bool NvtxExpression::stack_matches(NameSpan stack) const noexcept {
  // As a glob: only the last '*' need be retried.
  constexpr size_t kNone = static_cast<size_t>(-1);
  size_t t = 0, i = 0, star = kNone, retry = 0;
  while (i < stack.size()) {
    if (t < x_tokens.size() && x_tokens[t].kind == Kind::kMany) {
      star = t++;
      retry = i;
    } else if (t < x_tokens.size() &&
               (x_tokens[t].kind == Kind::kOne || x_tokens[t].name->matches(stack[i]))) {
      ++t;
      ++i;
    } else if (star != kNone) {
      i = ++retry;
      t = star + 1;
    } else {
      return false;
    }
  }
  while (t < x_tokens.size() && x_tokens[t].kind == Kind::kMany) ++t;
  return t == x_tokens.size();
}

bool NvtxExpression::all_open(NameSpan names) const noexcept {
  return std::all_of(x_tokens.begin(), x_tokens.end(), [&](const Token& token) {
    return std::any_of(names.begin(), names.end(),
                       [&](std::string_view name) { return token.name->matches(name); });
  });
}

bool NvtxExpression::matches(const RangeView& ranges) const noexcept {
  if (!x_push_pop)
    return std::any_of(ranges.start_end.begin(), ranges.start_end.end(),
                       [&](const DomainRanges& d) { return domain_matches(d.domain) && all_open(d.names); });
  if (!ranges.regions.empty() && domain_matches("") && stack_matches(ranges.regions)) return true;
  return std::any_of(ranges.push_pop.begin(), ranges.push_pop.end(), [&](const DomainRanges& d) {
    return domain_matches(d.domain) && stack_matches(d.names);
  });
}

}  // namespace cuptiprof
