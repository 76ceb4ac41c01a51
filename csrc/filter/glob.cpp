#include "filter/glob.h"

#include "filter/utf8.h"

namespace cuptiprof {

Glob::Glob(std::string_view pattern) {
  std::vector<char32_t> p;
  for (size_t i = 0; i < pattern.size();) p.push_back(next_code_point(pattern, i));

  for (size_t i = 0; i < p.size();) {
    const char32_t c = p[i++];
    if (c == '*') {
      if (x_tokens.empty() || x_tokens.back().kind != Kind::kStar) x_tokens.push_back({Kind::kStar});
      continue;
    }
    if (c == '?') {
      x_tokens.push_back({Kind::kAny});
      continue;
    }
    if (c != '[') {
      x_tokens.push_back({Kind::kChar, false, c});
      continue;
    }
    // A set: a ']' that comes first belongs to it; without a closing ']' the '[' is an ordinary character.
    size_t end = i;
    if (end < p.size() && p[end] == '!') ++end;
    if (end < p.size() && p[end] == ']') ++end;
    while (end < p.size() && p[end] != ']') ++end;
    if (end >= p.size()) {
      x_tokens.push_back({Kind::kChar, false, U'['});
      continue;
    }
    Token set{Kind::kSet, p[i] == '!', 0, static_cast<unsigned>(x_ranges.size())};
    for (size_t k = i + (set.negated ? 1 : 0); k < end;) {
      if (k + 2 < end && p[k + 1] == '-') {
        x_ranges.emplace_back(p[k], p[k + 2]);  // empty when reversed, as in Python
        k += 3;
      } else {
        x_ranges.emplace_back(p[k], p[k]);
        ++k;
      }
    }
    set.last_range = static_cast<unsigned>(x_ranges.size());
    x_tokens.push_back(set);
    i = end + 1;
  }
}

bool Glob::token_matches(const Token& token, char32_t c) const noexcept {
  switch (token.kind) {
    case Kind::kChar:
      return c == token.code_point;
    case Kind::kSet:
      for (unsigned r = token.first_range; r < token.last_range; ++r)
        if (c >= x_ranges[r].first && c <= x_ranges[r].second) return !token.negated;
      return token.negated;
    default:
      return true;
  }
}

bool Glob::matches(std::string_view text) const noexcept {
  // Only the last '*' need ever be retried: an earlier one could give nothing that this one cannot.
  constexpr size_t kNone = static_cast<size_t>(-1);
  size_t t = 0, i = 0, star = kNone, retry = 0;
  while (i < text.size()) {
    if (t < x_tokens.size() && x_tokens[t].kind == Kind::kStar) {
      star = t++;
      retry = i;
      continue;
    }
    size_t next = i;
    if (t < x_tokens.size() && token_matches(x_tokens[t], next_code_point(text, next))) {
      ++t;
      i = next;
      continue;
    }
    if (star == kNone) return false;
    next_code_point(text, retry);
    i = retry;
    t = star + 1;
  }
  while (t < x_tokens.size() && x_tokens[t].kind == Kind::kStar) ++t;
  return t == x_tokens.size();
}

}  // namespace cuptiprof
