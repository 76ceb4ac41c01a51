// Which line an instruction belongs to, from the bytes of co_linetable: as PyCode_Addr2Line, which also looks
// at what tracing and monitoring change meanwhile (under the GIL, which we do not have).
#pragma once
#include <cstddef>
#include <cstdint>

namespace cuptiprof::frames {

// CPython's Objects/locations.md. 0: the instruction has no line.
class LocationTable {  // 3.11 on
 public:
  static int line(const unsigned char* table, size_t length, int first_line, int offset) noexcept {
    const unsigned char *p = table, *end = table + length;
    int line = first_line;
    for (int at = 0; p < end;) {
      const unsigned char head = *p++;
      const int code = head >> 3 & 15;
      at += ((head & 7) + 1) * 2;  // code units of two bytes
      if (code == 13 || code == 14)
        line += signed_number(p, end);
      else if (code >= 10 && code <= 12)
        line += code - 10;
      if (at > offset) return code == 15 || line < 0 ? 0 : line;
      while (p < end && !(*p & 0x80)) ++p;  // columns
    }
    return 0;
  }

 private:
  static int signed_number(const unsigned char*& p, const unsigned char* end) noexcept {
    uint32_t value = 0;
    for (int shift = 0; p < end && shift < 32; shift += 6) {
      const unsigned char byte = *p++;
      value |= static_cast<uint32_t>(byte & 63) << shift;
      if (!(byte & 64)) break;
    }
    const int magnitude = static_cast<int>(value >> 1);
    return value & 1 ? -magnitude : magnitude;
  }
};

// CPython 3.10's Objects/lnotab_notes.txt: pairs of bytes and lines. 0: the instruction has no line.
class LinePairs {
 public:
  static int line(const unsigned char* table, size_t length, int first_line, int offset) noexcept {
    int line = first_line;
    for (size_t i = 0, at = 0; i + 1 < length; i += 2) {
      const auto lines = static_cast<signed char>(table[i + 1]);
      if (lines != -128) line += lines;
      at += table[i];
      if (static_cast<int>(at) > offset) return lines == -128 || line < 0 ? 0 : line;
    }
    return 0;
  }
};

}  // namespace cuptiprof::frames
