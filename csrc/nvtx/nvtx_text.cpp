#include "nvtx/nvtx_text.h"

#include <cstdint>
#include <cstring>

#include "nvtx/link.h"

namespace cuptiprof::nvtx {

std::string_view text_of(const char* ascii) noexcept {
  return ascii ? std::string_view(ascii, strnlen(ascii, kMaxText)) : std::string_view();
}

std::string_view text_of(const wchar_t* wide, char* out, size_t room) noexcept {
  size_t n = 0;
  for (; wide && *wide; ++wide) {
    auto c = static_cast<uint32_t>(*wide);
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) c = 0xfffd;
    const size_t bytes = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    if (n + bytes > room) break;
    if (bytes == 1) {
      out[n++] = static_cast<char>(c);
      continue;
    }
    out[n++] = static_cast<char>((0xf00u >> bytes & 0xff) | c >> 6 * (bytes - 1));
    for (size_t i = bytes - 1; i-- > 0;) out[n++] = static_cast<char>(0x80 | (c >> 6 * i & 0x3f));
  }
  return {out, n};
}

}  // namespace cuptiprof::nvtx
