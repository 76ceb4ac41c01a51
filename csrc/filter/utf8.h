// Code points of text that may be anything: a byte that is not part of valid UTF-8 counts as one character of
// its own.
#pragma once
#include <cstddef>
#include <string_view>

namespace cuptiprof {

constexpr char32_t kInvalidByte = 0x110000;  // + the byte

// The character at byte `i`, which must be inside the text; moves `i` to the next one.
inline char32_t next_code_point(std::string_view text, size_t& i) noexcept {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char first = byte(i);
  if (first < 0x80) {
    ++i;
    return first;
  }
  const size_t length = first >= 0xf0 && first < 0xf8   ? 4
                        : first >= 0xe0 && first < 0xf0 ? 3
                        : first >= 0xc2 && first < 0xe0 ? 2
                                                        : 0;
  if (length != 0 && text.size() - i >= length) {
    char32_t c = first & (0xff >> (length + 1));
    size_t k = 1;
    for (; k < length && (byte(i + k) & 0xc0) == 0x80; ++k) c = (c << 6) | (byte(i + k) & 0x3f);
    constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (k == length && c >= kSmallest[length] && c < kInvalidByte) {
      i += length;
      return c;
    }
  }
  ++i;
  return kInvalidByte + first;
}

}  // namespace cuptiprof
