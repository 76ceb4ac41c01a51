// Names of a code object as UTF-8, read without the GIL: text in Python does not change once it is made, and
// the code object, which a frame of this thread runs, keeps it.
#pragma once
#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cuptiprof::frames {

// The beginning of a text that is longer than `kMax` bytes.
class NameCopy {
 public:
  static constexpr size_t kMax = 4096;

  explicit NameCopy(PyObject* text) noexcept {
    if (!text || !PyUnicode_Check(text)) return;
#if PY_VERSION_HEX < 0x030c0000
    if (!PyUnicode_IS_READY(text)) return;
#endif
    const int kind = PyUnicode_KIND(text);
    const void* data = PyUnicode_DATA(text);
    const Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    for (Py_ssize_t i = 0; i < length; ++i)
      if (!put(PyUnicode_READ(kind, data, i))) break;
  }
  [[nodiscard]] std::string_view view() const noexcept { return {x_bytes, x_length}; }

 private:
  // Lone surrogates (of a file name that is not UTF-8) are shown as escapes.
  bool put(Py_UCS4 c) noexcept {
    if (c >= 0xd800 && c < 0xe000) {
      constexpr const char* kDigits = "0123456789abcdef";
      const char escape[] = {
          '\\', 'u', kDigits[c >> 12 & 15], kDigits[c >> 8 & 15], kDigits[c >> 4 & 15], kDigits[c & 15]};
      return append(escape, sizeof escape);
    }
    if (c < 0x80) {
      const char one[] = {static_cast<char>(c)};
      return append(one, 1);
    }
    char bytes[4];
    size_t n = 0;
    if (c < 0x800) {
      bytes[n++] = static_cast<char>(0xc0 | c >> 6);
    } else {
      if (c < 0x10000) {
        bytes[n++] = static_cast<char>(0xe0 | c >> 12);
      } else {
        bytes[n++] = static_cast<char>(0xf0 | c >> 18);
        bytes[n++] = static_cast<char>(0x80 | (c >> 12 & 63));
      }
      bytes[n++] = static_cast<char>(0x80 | (c >> 6 & 63));
    }
    bytes[n++] = static_cast<char>(0x80 | (c & 63));
    return append(bytes, n);
  }
  bool append(const char* bytes, size_t n) noexcept {
    if (x_length + n > kMax) return false;
    for (size_t i = 0; i < n; ++i) x_bytes[x_length++] = bytes[i];
    return true;
  }

  char x_bytes[kMax];
  size_t x_length = 0;
};

}  // namespace cuptiprof::frames
