// Which line an instruction belongs to, from the bytes of co_linetable: as PyCode_Addr2Line, which also looks
// at what tracing and monitoring change meanwhile (under the GIL, which we do not have).
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace cuptiprof::frames {

// CPython's Objects/locations.md. 0: the instruction has no line.
class LocationTable {  // 3.11 on
 public:
  static int line(const unsigned char* table, size_t length, int first_line, int offset) noexcept {
    const unsigned char *p = table, *end = table + length;
    auto line = static_cast<uint32_t>(first_line);  // of a damaged table it wraps around
    for (int at = 0; p < end;) {
      const unsigned char head = *p++;
      const int code = head >> 3 & 15;
      at += ((head & 7) + 1) * 2;  // code units of two bytes
      if (code == 13 || code == 14)
        line += signed_number(p, end);
      else if (code >= 10 && code <= 12)
        line += static_cast<uint32_t>(code - 10);
      if (at > offset) return code == 15 ? 0 : std::max(0, static_cast<int>(line));
      while (p < end && !(*p & 0x80)) ++p;  // columns
    }
    return 0;
  }

 private:
  static uint32_t signed_number(const unsigned char*& p, const unsigned char* end) noexcept {
    uint32_t value = 0;
    for (int shift = 0; p < end && shift < 32; shift += 6) {
      const unsigned char byte = *p++;
      value |= static_cast<uint32_t>(byte & 63) << shift;
      if (!(byte & 64)) break;
    }
    return value & 1 ? 0 - (value >> 1) : value >> 1;
  }
};

// CPython 3.10's Objects/lnotab_notes.txt: pairs of bytes and lines. 0: the instruction has no line.
class LinePairs {
 public:
  static int line(const unsigned char* table, size_t length, int first_line, int offset) noexcept {
    auto line = static_cast<uint32_t>(first_line);
    for (size_t i = 0, at = 0; i + 1 < length; i += 2) {
      const auto lines = static_cast<signed char>(table[i + 1]);
      if (lines != -128) line += static_cast<uint32_t>(lines);
      at += table[i];
      if (static_cast<int>(at) > offset) return lines == -128 ? 0 : std::max(0, static_cast<int>(line));
    }
    return 0;
  }
};

}  // namespace cuptiprof::frames
