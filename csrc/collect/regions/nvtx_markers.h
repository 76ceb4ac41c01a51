// NVTX's marks and start/end ranges as rows of `markers`. The latter belong to no thread: started on one,
// they may end on another. Decoder thread only.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/store.h"
#include "threads/thread_slots.h"

namespace cuptiprof {

class NvtxMarkers {
 public:
  explicit NvtxMarkers(Losses& losses) : x_losses(losses) {}
  ~NvtxMarkers();
  NvtxMarkers(const NvtxMarkers&) = delete;
  NvtxMarkers& operator=(const NvtxMarkers&) = delete;

  // Events of the kinds kMark, kRangeStart and kRangeEnd, of the thread `tid`. Their metadata is ours from
  // here on.
  void apply(Store& store, const Event& e, uint32_t tid, int64_t time);
  // Rows of ranges that are still open, with `now` as their end.
  void write_open(Store& store, int64_t now) const;

  // Which start/end ranges are open, as a number: their labels, sorted. 0: none.
  uint32_t open_set();
  bool is_full() const { return x_sets.size() >= kMaxSets; }
  // Sets go, but the newest `most`, and what is open. Returns the new number of each, kLostSet of those that
  // have gone. Whoever has numbers must take the new ones.
  std::vector<uint32_t> age(size_t most);
  // Of all sets and open ranges.
  void each_label(auto&& visit) const {
    for (const auto& [number, range] : x_open) visit(range.label);
    for (const auto& set : x_sets)
      for (const uint32_t label : set) visit(label);
  }
  const std::vector<uint32_t>& labels(uint32_t set) const { return x_sets[set]; }

  static constexpr uint32_t kLostSet = 1;       // a set that is no longer known
  static constexpr size_t kMaxSets = 1u << 14;  // of ranges that were open together

 private:
  struct Range {
    uint32_t label;
    uint32_t tid;
    int64_t start;
    RegionMetadata* metadata;
  };
  static void write(Store& store, const Range& range, int64_t end, bool is_open);

  Losses& x_losses;
  std::unordered_map<uint64_t, Range> x_open;           // by the range's number
  std::map<std::vector<uint32_t>, uint32_t> x_numbers;  // of sets
  std::vector<std::vector<uint32_t>> x_sets{{}, {}};    // by number
  uint32_t x_set = 0;                                   // what is open now
  bool x_set_is_old = false;
};

}  // namespace cuptiprof
