#include "collect/nvtx/said_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "filter/utf8.h"

namespace cuptiprof {
namespace {

// The Python package gives this colour to every range of which nothing else is said.
constexpr uint32_t kPackageBlue = 0x0000ff;

bool are_digits(std::string_view text) noexcept {
  return !text.empty() && text.size() <= 19 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Lists of numbers, of pairs, of lists of numbers.
bool is_list(std::string_view text) noexcept {
  return text.size() >= 2 && text.front() == '[' && text.back() == ']' &&
         text.find_first_not_of("0123456789[](), -") == text.npos;
}

// Takes `marker` and what follows it, up to the next marker, off the end of `rest`.
bool take(std::string_view& rest, std::string_view marker, bool (*valid)(std::string_view) noexcept,
          std::string_view& value) noexcept {
  const size_t at = rest.rfind(marker);
  if (at == rest.npos) return false;
  const std::string_view found = rest.substr(at + marker.size());
  if (!valid(found)) return false;
  value = found;
  rest = rest.substr(0, at);
  return true;
}

void append_key(std::string& out, std::string_view key) {
  out += out.empty() ? "{\"" : ", \"";
  out += key;
  out += "\": ";
}

// Bytes that are no UTF-8 are replaced.
void append_text(std::string& out, std::string_view text) {
  out += '"';
  for (size_t i = 0; i < text.size();) {
    const size_t from = i;
    const char32_t c = next_code_point(text, i);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += text[from];
    } else if (c < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      out += escaped;
    } else if (c >= kInvalidByte || (c >= 0xd800 && c < 0xe000)) {
      out += "\xef\xbf\xbd";
    } else {
      out += text.substr(from, i - from);
    }
  }
  out += '"';
}

template <typename Number>
void append_number(std::string& out, Number value) {
  std::array<char, 32> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  out.append(digits.data(), end);
}

void append_payload(std::string& out, const nvtx::Said& said) {
  append_key(out, "payload");
  if (said.payload_kind == nvtx::PayloadKind::kUnsigned) return append_number(out, said.payload.u);
  if (said.payload_kind == nvtx::PayloadKind::kSigned) return append_number(out, said.payload.i);
  // JSON has no NaN and no infinity; Python reads and writes these.
  const double value = said.payload.f;
  if (std::isnan(value))
    out += "NaN";
  else if (std::isinf(value))
    out += value > 0 ? "Infinity" : "-Infinity";
  else
    append_number(out, value);
  if (value == std::trunc(value) && std::isdigit(static_cast<unsigned char>(out.back())) &&
      out.find('e', out.rfind(' ')) == out.npos)
    out += ".0";  // read back as what it was
}

}  // namespace

TorchText torch_text(std::string_view text) noexcept {
  TorchText out{text, {}, {}, {}, {}};
  if (text.find(", ") == text.npos) return out;
  std::string_view rest = text;
  take(rest, ", input_op_ids = ", &is_list, out.input_op_ids);
  take(rest, ", sizes = ", &is_list, out.sizes);
  take(rest, ", op_id = ", &are_digits, out.op_id);
  take(rest, ", seq = ", &are_digits, out.seq);
  if (rest.empty()) return {text, {}, {}, {}, {}};
  out.name = rest;
  return out;
}

std::string attributes_json(const nvtx::Said& said, const TorchText& torch, std::string_view category) {
  std::string out;
  if (!category.empty()) {
    append_key(out, "category");
    append_text(out, category);
  } else if (said.category != 0) {
    append_key(out, "category");
    append_number(out, said.category);
  }
  if (said.payload_kind != nvtx::PayloadKind::kNone) append_payload(out, said);
  if (said.has_color && said.color != kPackageBlue) {
    char color[16];
    std::snprintf(color, sizeof color, "\"#%08x\"", said.color);
    append_key(out, "color");
    out += color;
  }
  if (!torch.seq.empty()) append_key(out, "seq"), out += torch.seq;
  if (!torch.op_id.empty()) append_key(out, "op_id"), out += torch.op_id;
  if (!torch.sizes.empty()) append_key(out, "sizes"), append_text(out, torch.sizes);
  if (!torch.input_op_ids.empty()) append_key(out, "input_op_ids"), append_text(out, torch.input_op_ids);
  if (!out.empty()) out += '}';
  return out;
}

}  // namespace cuptiprof
