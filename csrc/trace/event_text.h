// Events of a trace file as JSON text, out of columns: the way back of event_scanner.h.
//
// An event is a row, its text a sequence of pieces: what is the same in every row, then what a column has
// there.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/column_cells.h"

namespace cuptiprof {

// Integer ns as microseconds with three decimals, exactly. A fourth decimal, 1, stands where the float64 of
// three would lose a nanosecond to readers that multiply by 1,000 and cut (Perfetto): slices that end
// together would not nest any more.
void append_microseconds(std::string& out, int64_t ns);

class EventText {
 public:
  enum class Form : uint8_t {
    kNumber,
    kMicroseconds,  // of ns
    kText,          // of an index of `texts`, which are JSON already
  };

  // `before` and the value of each row. Columns are only looked at, `texts` are copied. An index that no text
  // has is that of an empty text.
  struct Piece {
    std::string before;
    CellColumn values;               // none: `before` is all
    const uint8_t* shown = nullptr;  // 0: the row has no such piece; null: every row has it
    Form form = Form::kNumber;
    std::string texts;              // one after the other
    std::vector<size_t> text_ends;  // of each
  };

  void add(Piece piece) { pieces_.push_back(std::move(piece)); }

  // The rows `begin`..`end`-1, which every column has.
  void append_rows(std::string& out, size_t begin, size_t end) const;

 private:
  std::vector<Piece> pieces_;
};

}  // namespace cuptiprof
