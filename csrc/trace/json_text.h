// The least of JSON that it takes to find one's way in a text: where a token ends. Every function gets the
// first character of what it passes and returns the one behind it; null: the text ends before.
//
// What is passed over is not judged: brackets must match and strings must end, no more.
#pragma once
#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace cuptiprof::json {

inline constexpr uint32_t kMaxDepth = 512;

struct Malformed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline const char* skip_space(const char* p, const char* end) noexcept {
  while (p != end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) ++p;
  return p;
}

// `p`: its opening quote.
inline const char* skip_string(const char* p, const char* end) noexcept {
  ++p;
  for (;;) {
    p = static_cast<const char*>(std::memchr(p, '"', static_cast<size_t>(end - p)));
    if (!p) return nullptr;
    const char* before = p;  // an odd number of backslashes: the quote is one of the text
    while (before[-1] == '\\') --before;
    if ((p - before) % 2 == 0) return p + 1;
    ++p;
  }
}

inline bool is_scalar(char c) noexcept {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '+' ||
         c == '.';
}

// A number, or a word.
inline const char* skip_scalar(const char* p, const char* end) {
  const char* begin = p;
  while (p != end && is_scalar(*p)) ++p;
  if (p == end) return nullptr;  // more of it may come
  if (p == begin) throw Malformed("a value is missing");
  return p;
}

// `p`: its opening bracket.
inline const char* skip_container(const char* p, const char* end) {
  uint64_t is_object[kMaxDepth / 64];
  uint32_t depth = 0;
  for (; p != end; ++p) {
    switch (*p) {
      case '"':
        p = skip_string(p, end);
        if (!p) return nullptr;
        --p;
        break;
      case '{':
      case '[': {
        if (depth == kMaxDepth) throw Malformed("values are nested too deeply");
        const uint64_t bit = uint64_t{1} << depth % 64;
        if (*p == '{')
          is_object[depth / 64] |= bit;
        else
          is_object[depth / 64] &= ~bit;
        ++depth;
        break;
      }
      case '}':
      case ']':
        --depth;
        if ((is_object[depth / 64] >> depth % 64 & 1) != (*p == '}'))
          throw Malformed("brackets do not match");
        if (depth == 0) return p + 1;
        break;
      default:
        break;
    }
  }
  return nullptr;
}

inline const char* skip_value(const char* p, const char* end) {
  if (p == end) return nullptr;
  if (*p == '"') return skip_string(p, end);
  if (*p == '{' || *p == '[') return skip_container(p, end);
  return skip_scalar(p, end);
}

}  // namespace cuptiprof::json
