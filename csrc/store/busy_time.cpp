#include "store/busy_time.h"

#include <algorithm>

namespace cuptiprof {

void BusyTime::join() {
  const auto earlier = [](const Piece& a, const Piece& b) { return a.start < b.start; };
  if (!std::is_sorted(x_pieces.begin(), x_pieces.end(), earlier))
    std::sort(x_pieces.begin(), x_pieces.end(), earlier);
  size_t kept = 0;
  for (const Piece& piece : x_pieces) {
    const int64_t start = std::max(piece.start, x_settled_until);
    if (piece.end <= start) continue;
    if (kept != 0 && start <= x_pieces[kept - 1].end)
      x_pieces[kept - 1].end = std::max(x_pieces[kept - 1].end, piece.end);
    else
      x_pieces[kept++] = {start, piece.end};
  }
  x_pieces.resize(kept);
}

void BusyTime::settle() {
  join();
  if (x_pieces.size() <= kKept) return;
  const auto until = x_pieces.end() - kKept;
  for (auto piece = x_pieces.begin(); piece != until; ++piece) x_settled += piece->end - piece->start;
  x_settled_until = std::prev(until)->end;
  x_pieces.erase(x_pieces.begin(), until);
}

int64_t BusyTime::total() {
  join();
  int64_t sum = x_settled;
  for (const Piece& piece : x_pieces) sum += piece.end - piece.start;
  return sum;
}

}  // namespace cuptiprof
