// Slices and counters out of columns as packets of Perfetto's trace format (protos/perfetto/trace in its
// repository).
//
// A slice is two packets, its beginning and its end. Readers sort packets by time and leave those of one time
// in the order of the file: so the packets of a track are written in the order in which its slices nest.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/column_cells.h"

namespace cuptiprof {

class PerfettoSlices {
 public:
  enum class Form : uint8_t { kSigned, kDouble, kInterned, kFlow, kLastFlow };

  // What the slices of one kind have besides times: an argument by number of its name, or an arrow by its
  // number.
  struct Extra {
    CellColumn values;
    const uint8_t* shown = nullptr;  // 0: the row has none; null: every row has it
    Form form = Form::kSigned;
    uint32_t name = 0;
  };

  // Slices of one category; columns are only looked at. `track`: index of `tracks`.
  struct Kind {
    size_t rows = 0;
    uint32_t category = 0;
    const int64_t *start = nullptr, *end = nullptr;
    CellColumn track, name;
    std::vector<Extra> extras;
  };

  // `tracks`: their numbers in the file.
  explicit PerfettoSlices(std::vector<uint64_t> tracks) : tracks_(std::move(tracks)) {}

  void add(Kind kind) { kinds_.push_back(std::move(kind)); }

  // Packets of the next slices, of about so many bytes; empty: that was all. Nothing is added after the first
  // call.
  std::string next(size_t bytes);

 private:
  struct Slice {
    int64_t start, end;
    uint32_t kind, row;
  };

  void arrange();
  void begin(std::string& out, const Slice& slice, uint64_t track);
  void end(std::string& out, int64_t time, uint64_t track);

  std::vector<uint64_t> tracks_;
  std::vector<Kind> kinds_;
  std::vector<Slice> slices_;   // by track, those of one in the order in which they begin
  std::vector<size_t> bounds_;  // of each track in slices_
  std::vector<int64_t> open_;   // ends of the open slices of the track
  size_t track_ = 0, at_ = 0;
  bool is_arranged_ = false;
  std::string event_, annotation_;  // reused
};

// Packets of the values of one counter.
void append_perfetto_counter(std::string& out, uint64_t track, const int64_t* times, const double* values,
                             size_t count);

}  // namespace cuptiprof
