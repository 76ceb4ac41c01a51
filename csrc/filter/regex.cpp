#include "filter/regex.h"

#include <locale.h>

#include <algorithm>
#include <climits>
#include <string>
#include <vector>

#include "filter/filter_error.h"
#include "filter/perl_spellings.h"

namespace cuptiprof {
namespace {

constexpr size_t kMaxExpressionBytes = 8192;
constexpr size_t kMaxExpanded = 20000;  // nodes after '{n,m}' is written out, as libc does
constexpr size_t kMaxDepth = 200;       // libc's parser recurses on groups

[[noreturn]] void bad(std::string_view what, std::string_view whole, size_t at, std::string_view problem,
                      std::string_view hint) {
  throw_filter_error(what, whole, at, problem, hint);
}

// What libc would accept and do badly: say it with a position before libc sees it. `ere` is a part of
// `whole`, from byte `offset` on.
void check(std::string_view ere, std::string_view what, std::string_view whole, size_t offset) {
  if (ere.empty())
    bad(what, whole, offset, "empty regular expression", "Leave the filter out to select everything.");
  if (ere.size() > kMaxExpressionBytes)
    bad(what, whole, offset,
        "regular expression longer than " + std::to_string(kMaxExpressionBytes) + " bytes", "Shorten it.");
  refuse_perl_spellings(ere, what, whole, offset);
  struct Group {
    size_t at, outer_size;
  };
  std::vector<Group> open;
  size_t size = 0, atom = 0;  // nodes of the open group, and of its last atom
  const auto add_atom = [&](size_t n) {
    atom = n;
    size += n;
  };
  for (size_t i = 0; i < ere.size(); ++i) {
    const char c = ere[i];
    const size_t at = offset + i;
    if (c == '\0') bad(what, whole, at, "NUL byte in a regular expression", "Remove it.");
    if (c == '\\') {
      if (i + 1 == ere.size()) bad(what, whole, at, "trailing backslash", "Write \\\\ for a backslash.");
      const char n = ere[++i];
      if (n == '\0') bad(what, whole, at, "NUL byte in a regular expression", "Remove it.");
      if (n >= '1' && n <= '9')
        bad(what, whole, at, "back-references are not part of POSIX ERE", "Write the alternatives out.");
      add_atom(1);
    } else if (c == '[') {
      const size_t end = bracket_end(ere, i);
      if (end == std::string_view::npos)
        bad(what, whole, at, "unmatched [",
            "Close the bracket expression with ], or write \\[ for the character.");
      if (ere.substr(i, end - i).find('\0') != std::string_view::npos)
        bad(what, whole, at, "NUL byte in a regular expression", "Remove it.");
      i = end - 1;
      add_atom(1);
    } else if (c == '(') {
      if (open.size() >= kMaxDepth)
        bad(what, whole, at, "groups nested more than " + std::to_string(kMaxDepth) + " deep",
            "Simplify it.");
      open.push_back({i, size});
      size = 0;
      atom = 0;
    } else if (c == ')') {
      if (open.empty()) bad(what, whole, at, "unmatched )", "Write \\) for the character.");
      const size_t inner = size + 1;
      size = open.back().outer_size;
      open.pop_back();
      add_atom(inner);
    } else if (c == '{' && i + 1 < ere.size() && ere[i + 1] >= '0' && ere[i + 1] <= '9') {
      const size_t end = ere.find('}', i);
      size_t repeat = 0, n = 0;
      for (size_t k = i + 1; k < std::min(end, ere.size()); ++k) {
        n = ere[k] >= '0' && ere[k] <= '9'
                ? std::min<size_t>(n * 10 + static_cast<size_t>(ere[k] - '0'), 1000000)
                : 0;
        repeat = std::max(repeat, n);
      }
      size += atom * repeat;
      atom *= std::max<size_t>(repeat, 1);
      if (end != std::string_view::npos) i = end;
    } else if (c != '*' && c != '+' && c != '?' && c != '|') {
      add_atom(1);
    }
    if (size > kMaxExpanded)
      bad(what, whole, at, "the repetition counts multiply to too large an expression",
          "Use smaller {n,m} counts.");
  }
  if (!open.empty())
    bad(what, whole, offset + open.back().at, "unmatched (",
        "Close the group, or write \\( for the character.");
}

// Lives as long as the process.
struct CLocale {
  locale_t handle = newlocale(LC_ALL_MASK, "C", nullptr);
};

// regcomp reads the locale; names and patterns are bytes, so it is always "C", on this thread only.
int compile(regex_t& out, const std::string& ere, int flags) {
  static const CLocale c_locale;
  const locale_t before = c_locale.handle ? uselocale(c_locale.handle) : locale_t{};
  const int rc = regcomp(&out, ere.c_str(), flags);
  if (c_locale.handle) uselocale(before);
  return rc;
}

std::shared_ptr<const regex_t> make(const std::string& ere, std::string_view what, std::string_view whole,
                                    size_t offset) {
  auto compiled = std::make_unique<regex_t>();
  const int rc = compile(*compiled, ere, REG_EXTENDED | REG_NOSUB);
  if (rc != 0) {
    char text[128] = {};
    regerror(rc, compiled.get(), text, sizeof text);
    bad(what, whole, offset, text, "The syntax is that of grep -E (POSIX ERE).");
  }
  return {compiled.release(), [](const regex_t* r) {
            regfree(const_cast<regex_t*>(r));
            delete r;
          }};
}

bool run(const regex_t& r, std::string_view text) noexcept {
  if (text.size() > INT_MAX) return false;
  // REG_STARTEND: the length is given, so NUL bytes are ordinary and nothing is copied.
  regmatch_t bounds[1] = {};
  bounds[0].rm_so = 0;
  bounds[0].rm_eo = static_cast<regoff_t>(text.size());
  return regexec(&r, text.data() ? text.data() : "", 1, bounds, REG_STARTEND) == 0;
}

}  // namespace

Regex::Regex(std::string_view ere, std::string_view what, std::string_view whole, size_t position) {
  check(ere, what, whole, position);
  const std::string text(ere);
  make(text, what, whole, position);  // by itself first: errors are about what the user wrote
  // Anchored with any bytes before it, the search is one pass of the automaton; libc's own search starts
  // afresh at every byte, which on a name of 32,000 characters is quadratic. '.' would not match NUL, [^x]|x
  // does.
  x_search = make("^([^x]|x)*(" + text + ")", what, whole, position);
  x_whole = make("^(" + text + ")$", what, whole, position);
}

bool Regex::found_in(std::string_view text) const noexcept { return run(*x_search, text); }
bool Regex::matches_all_of(std::string_view text) const noexcept { return run(*x_whole, text); }

}  // namespace cuptiprof
