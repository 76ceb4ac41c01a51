#include "trace/event_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace cuptiprof {
namespace {

constexpr uint64_t kNsOfOne = 1000;
// Readers cut the whole number, or its decimals alone; up to here a fourth decimal changes the float64 of the
// whole.
constexpr uint64_t kExactBelow = 700'000'000'000'000;

// Which decimals lose a nanosecond to a reader that takes them by themselves.
std::array<bool, kNsOfOne> cut_decimals() {
  std::array<bool, kNsOfOne> out{};
  for (uint64_t r = 0; r < kNsOfOne; ++r)
    out[r] = static_cast<uint64_t>(static_cast<double>(r) / 1000.0 * 1000.0) != r;
  return out;
}

template <typename T>
void append_integer(std::string& out, T value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value);
  out.append(digits, end.ptr);
}

// The shortest that reads back the same. JSON knows no infinity.
void append_double(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value);
  const std::string_view text(digits, static_cast<size_t>(end.ptr - digits));
  out += text;
  if (text.find_first_of(".e") == text.npos) out += ".0";
}

std::string_view text_at(const EventText::Piece& piece, size_t row) noexcept {
  const auto index = static_cast<uint64_t>(piece.values.integer(row));
  if (index >= piece.text_ends.size()) return {};
  const size_t begin = index ? piece.text_ends[index - 1] : 0;
  return std::string_view(piece.texts).substr(begin, piece.text_ends[index] - begin);
}

void append_piece(std::string& out, const EventText::Piece& piece, size_t row) {
  if (piece.shown && !piece.shown[row]) return;
  out += piece.before;
  if (!piece.values) return;
  if (piece.form == EventText::Form::kText)
    out += text_at(piece, row);
  else if (piece.form == EventText::Form::kMicroseconds)
    append_microseconds(out, piece.values.integer(row));
  else if (piece.values.type == CellType::kF64)
    append_double(out, piece.values.cell<double>(row));
  else if (piece.values.type == CellType::kU64)
    append_integer(out, piece.values.cell<uint64_t>(row));
  else
    append_integer(out, piece.values.integer(row));
}

}  // namespace

void append_microseconds(std::string& out, int64_t ns) {
  static const std::array<bool, kNsOfOne> kCut = cut_decimals();
  const uint64_t size = ns < 0 ? uint64_t{0} - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  const uint64_t rest = size % kNsOfOne;
  if (ns < 0) out += '-';
  append_integer(out, size / kNsOfOne);
  const char decimals[4] = {'.', static_cast<char>('0' + rest / 100), static_cast<char>('0' + rest / 10 % 10),
                            static_cast<char>('0' + rest % 10)};
  out.append(decimals, sizeof decimals);
  if (rest == 0 || size >= kExactBelow) return;
  const bool whole_is_cut = static_cast<uint64_t>(static_cast<double>(size) / 1000.0 * 1000.0) != size;
  if (kCut[rest] || whole_is_cut) out += '1';
}

void EventText::append_rows(std::string& out, size_t begin, size_t end) const {
  for (size_t row = begin; row < end; ++row)
    for (const Piece& piece : pieces_) append_piece(out, piece, row);
}

}  // namespace cuptiprof
