// How long a GPU did anything at all: the length of the union of the times of its work, as that comes.
//
// Exact as long as work comes at most kKept separate pieces late. What comes later than that counts only with
// its part after the pieces that were added up already. Bounded memory. One thread at a time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cuptiprof {

class BusyTime {
 public:
  // Work from start to end, ns. One without times (0 and 0) is left out.
  void add(int64_t start, int64_t end) {
    if (end <= start) return;
    if (!x_pieces.empty()) {
      Piece& last = x_pieces.back();
      if (start >= last.start && start <= last.end) {  // back to back, or inside
        if (end > last.end) last.end = end;
        return;
      }
    }
    x_pieces.push_back({start, end});
    if (x_pieces.size() >= 2 * kKept) settle();
  }

  // ns, of all that was added.
  int64_t total();

  static constexpr size_t kKept = 16384;

 private:
  struct Piece {
    int64_t start, end;
  };
  // The pieces in order, none of which touches another.
  void join();
  // Adds up the oldest pieces, so that kKept are left.
  void settle();

  std::vector<Piece> x_pieces;
  int64_t x_settled = 0;                // ns
  int64_t x_settled_until = INT64_MIN;  // the last end of what was added up
};

}  // namespace cuptiprof
