#include "trace/event_columns.h"

#include <limits>

namespace cuptiprof {
namespace {

constexpr ptrdiff_t kMaxDigits = 18;  // of a 64-bit integer that surely fits
constexpr int64_t kThousand = 1000;

bool is_decimal(char c) noexcept { return c >= '0' && c <= '9'; }

// [-]digits, and for decimals [.digits]. False: it is something else, or too large.
bool parse_number(std::string_view token, bool decimal, int64_t* out) noexcept {
  const char* p = token.data();
  const char* end = p + token.size();
  const bool negative = p != end && *p == '-';
  p += negative;
  const char* digits = p;
  int64_t value = 0;
  for (; p != end && is_decimal(*p); ++p) {
    if (p - digits == kMaxDigits) return false;
    value = value * 10 + (*p - '0');
  }
  if (p == digits) return false;
  if (decimal) {
    if (value >= std::numeric_limits<int64_t>::max() / kThousand) return false;
    value *= kThousand;
    if (p != end && *p == '.') {
      int64_t unit = kThousand / 10;
      for (++p; p != end && is_decimal(*p); ++p, unit /= 10) value += unit * (*p - '0');
    }
  }
  *out = negative ? -value : value;
  return p == end;
}

}  // namespace

uint32_t FieldColumn::intern(std::string_view token, StringTable& strings) {
  if (strings.at(x_last) != token) x_last = strings.intern(token);
  return x_last;
}

void FieldColumn::add(uint32_t event, std::string_view token, StringTable& strings) {
  int64_t number = 0;
  if (kind != FieldKind::kText && parse_number(token, kind == FieldKind::kDecimal, &number)) {
    number_events.push_back(event);
    numbers.push_back(number);
  } else {
    text_events.push_back(event);
    texts.push_back(intern(token, strings));
  }
}

}  // namespace cuptiprof
