#include "filter/perl_spellings.h"

#include <algorithm>
#include <string>

#include "filter/filter_error.h"

namespace cuptiprof {
namespace {

constexpr size_t kUnclosed = std::string_view::npos;
constexpr std::string_view kNoGroups = "Write ( ) for every group: groups only group, nothing is captured.";

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// What to write instead of '\c' outside a bracket expression; empty where libc reads it as Perl does: the
// word and space escapes that glibc adds to ERE (\w \W \s \S \b \B), and a backslash before punctuation.
std::string_view instead_of_escape(char c) {
  switch (c) {
    case 'd':
      return "Write [0-9] for a digit.";
    case 'D':
      return "Write [^0-9] for anything but a digit.";
    case 'h':
      return "Write [[:blank:]] for a blank or tab.";
    case 'H':
      return "Write [^[:blank:]] for anything but a blank or tab.";
    case 't':
    case 'n':
    case 'r':
    case 'f':
    case 'v':
    case 'V':
    case 'R':
      return "Write [[:space:]] for any white space, or the character itself.";
    case 'A':
      return "Write ^ for the beginning.";
    case 'Z':
    case 'z':
      return "Write $ for the end.";
    case 'Q':
    case 'E':
      return "Write a backslash before each of . [ ( ) * + ? { | ^ $ \\ instead.";
    case 'p':
    case 'P':
      return "Write a class: [[:alpha:]], [[:digit:]], [[:upper:]], [^[:alnum:]].";
    case 'k':
    case 'g':
      return "Back-references are not part of POSIX ERE: write the alternatives out.";
    case 'G':
    case 'K':
      return "Leave it out: a filter only searches.";
    case 'N':
    case 'X':
    case 'C':
      return "Write . for any character.";
    case 'x':
    case 'u':
    case 'U':
    case 'o':
    case 'c':
    case 'a':
    case 'e':
    case '0':
      return "Write the character itself.";
    // Word boundaries to GNU, the plain characters to everyone else; kernels' names are full of < and >.
    case '<':
    case '>':
      return "Write < or > alone for the character, \\b for a word boundary.";
    case '`':
    case '\'':
      return "Write ^ for the beginning, $ for the end, or the character without a backslash.";
    case 'w':
    case 'W':
    case 's':
    case 'S':
    case 'b':
    case 'B':
      return {};
    default:
      return is_letter(c) ? "Write the letter without a backslash." : std::string_view{};
  }
}

std::string_view instead_of_bracket_escape(char c) {
  switch (c) {
    case 'd':
      return "In [ ] write 0-9 for the digits.";
    case 'w':
      return "In [ ] write [:alnum:]_ for word characters, e.g. [[:alnum:]_].";
    case 's':
    case 't':
    case 'n':
    case 'r':
    case 'f':
    case 'v':
      return "In [ ] write [:space:] for white space, e.g. [[:space:]].";
    case 'h':
      return "In [ ] write [:blank:] for blank and tab, e.g. [[:blank:]].";
    case 'D':
    case 'W':
    case 'S':
    case 'H':
      return "Write the class outside: ([a-z]|[^[:space:]]).";
    default:
      return "In [ ] a backslash is itself and takes no meaning away: write ] first, - last, ^ not first, "
             "\\\\ for a "
             "backslash.";
  }
}

std::string_view instead_of_group(std::string_view after) {
  if (after.starts_with('!') || after.starts_with("<!"))
    return "ERE has no look-around: select by one pattern and take away by another (exclude=).";
  if (after.starts_with('=') || after.starts_with("<="))
    return "ERE has no look-around: write what stands before and behind as parts of the expression.";
  if (after.starts_with('#')) return "ERE has no comments: leave it out.";
  if (after.starts_with(':') || after.starts_with('<') || after.starts_with('P') || after.starts_with('>') ||
      after.starts_with('|') || after.starts_with('\''))
    return kNoGroups;
  return "ERE has no flags: write both cases where either will do, e.g. [Gg]emm.";
}

}  // namespace

size_t bracket_end(std::string_view ere, size_t begin) noexcept {
  size_t i = begin + 1;
  if (i < ere.size() && ere[i] == '^') ++i;
  if (i < ere.size() && ere[i] == ']') ++i;
  for (; i < ere.size(); ++i) {
    if (ere[i] == ']') return i + 1;
    if (ere[i] == '[' && i + 1 < ere.size() &&
        (ere[i + 1] == ':' || ere[i + 1] == '.' || ere[i + 1] == '=')) {
      const char close[] = {ere[i + 1], ']', 0};
      const size_t end = ere.find(close, i + 2);
      if (end == kUnclosed) return end;
      i = end + 1;
    }
  }
  return kUnclosed;
}

void refuse_perl_spellings(std::string_view ere, std::string_view what, std::string_view whole,
                           size_t position) {
  const auto refuse = [&](size_t at, size_t length, std::string_view hint) {
    throw_filter_error(what, whole, position + at,
                       in_quotes(ere.substr(at, length)) + " is not part of POSIX ERE", hint);
  };
  bool after_quantifier = false;
  for (size_t i = 0; i < ere.size(); ++i) {
    const char c = ere[i];
    const bool is_interval = c == '{' && i + 1 < ere.size() && is_digit(ere[i + 1]);
    const bool is_quantifier = c == '*' || c == '+' || c == '?' || is_interval;
    if (is_quantifier && after_quantifier)
      refuse(i - 1, 2,
             "Leave the second quantifier out: a search finds the same names lazily or not. Write (a+)? for "
             "a group that may be missing.");
    after_quantifier = is_quantifier;
    if (c == '\\') {
      if (++i == ere.size()) return;
      if (const std::string_view hint = instead_of_escape(ere[i]); !hint.empty()) refuse(i - 1, 2, hint);
    } else if (c == '[') {
      const size_t end = bracket_end(ere, i);
      for (size_t k = i + 1; k < (end == kUnclosed ? ere.size() : end); ++k) {
        if (ere[k] == '[' && k + 1 < ere.size() &&
            (ere[k + 1] == ':' || ere[k + 1] == '.' || ere[k + 1] == '=')) {
          const char close[] = {ere[k + 1], ']', 0};
          k = ere.find(close, k + 2);
          if (k == kUnclosed) return;
          ++k;
        } else if (ere[k] == '\\' && k + 1 < ere.size()) {
          if (ere[k + 1] != '\\') refuse(k, 2, instead_of_bracket_escape(ere[k + 1]));
          ++k;
        }
      }
      if (end == kUnclosed) return;
      if (end - i > 4 && ere[i + 1] == ':' && ere[end - 2] == ':')
        refuse(i, end - i, "A class stands in a bracket expression of its own: [[:digit:]].");
      i = end - 1;
    } else if (c == '(' && i + 1 < ere.size() && ere[i + 1] == '?') {
      refuse(i, std::min<size_t>(ere.size() - i, 3), instead_of_group(ere.substr(i + 2)));
    } else if (is_interval) {
      const size_t end = ere.find('}', i);
      if (end == kUnclosed) return;
      i = end;
    }
  }
}

}  // namespace cuptiprof
