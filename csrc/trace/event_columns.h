// Fields of trace events by column: number of the event, and what the file says there. Sparse: an event that
// does not have the field has no entry.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_table.h"

namespace cuptiprof {

// How the values of a field are kept. What does not fit is kept as text.
enum class FieldKind : uint8_t {
  kText,     // any value, as it stands in the file
  kInteger,  // of 64 bits
  kDecimal,  // in thousandths, further digits cut: microseconds become ns, exactly
};

struct FieldColumn {
  std::string name;
  FieldKind kind = FieldKind::kText;
  std::vector<uint32_t> text_events, texts;  // IDs in a StringTable
  std::vector<uint32_t> number_events;
  std::vector<int64_t> numbers;

  // `token`: of JSON, strings with their quotes.
  void add(uint32_t event, std::string_view token, StringTable& strings);

 private:
  uint32_t intern(std::string_view token, StringTable& strings);
  uint32_t x_last = 0;  // events that follow each other often say the same
};

}  // namespace cuptiprof
