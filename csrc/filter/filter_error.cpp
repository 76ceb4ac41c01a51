#include "filter/filter_error.h"

#include <algorithm>

#include "base/error.h"
#include "filter/utf8.h"

namespace cuptiprof {

std::string in_quotes(std::string_view text) {
  constexpr size_t kMax = 160;
  constexpr char kHex[] = "0123456789abcdef";
  std::string out = "'";
  for (size_t i = 0; i < text.size();) {
    if (out.size() > kMax) {
      out += "...";
      break;
    }
    const size_t begin = i;
    const char32_t c = next_code_point(text, i);
    const bool printable = c >= 0x20 && c != 0x7f && !(c >= 0xd800 && c < 0xe000) && c < kInvalidByte;
    if (printable) {
      out.append(text.substr(begin, i - begin));
    } else {
      for (size_t k = begin; k < i; ++k) {
        const auto byte = static_cast<unsigned char>(text[k]);
        out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
      }
    }
  }
  return out + "'";
}

void throw_filter_error(std::string_view what, std::string_view text, size_t position,
                        std::string_view problem, std::string_view hint) {
  // Characters, not bytes: what the user counts.
  size_t characters = 0;
  for (size_t i = 0; i < std::min(position, text.size()); ++characters) next_code_point(text, i);
  std::string message = "bad ";
  message.append(what).append(" ").append(in_quotes(text));
  message.append(" at character ").append(std::to_string(characters + 1)).append(": ").append(problem);
  throw Error(ErrorKind::kFilter, std::move(message), std::string(hint));
}

}  // namespace cuptiprof
