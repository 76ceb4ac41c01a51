#include "trace/perfetto_slices.h"

#include <algorithm>
#include <cstring>

namespace cuptiprof {
namespace {

// Numbers of fields, shifted, with the type on the wire.
enum class Wire : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2 };
constexpr uint32_t tag(uint32_t field, Wire wire) { return field << 3 | static_cast<uint32_t>(wire); }

constexpr uint32_t kPacket = tag(1, Wire::kBytes);  // of Trace
constexpr uint32_t kTimestamp = tag(8, Wire::kVarint);
constexpr uint32_t kSequence = tag(10, Wire::kVarint);
constexpr uint32_t kFlags = tag(13, Wire::kVarint);
constexpr uint32_t kTrackEvent = tag(11, Wire::kBytes);
constexpr uint32_t kEventCategory = tag(3, Wire::kVarint);  // of TrackEvent
constexpr uint32_t kAnnotation = tag(4, Wire::kBytes);
constexpr uint32_t kType = tag(9, Wire::kVarint);
constexpr uint32_t kName = tag(10, Wire::kVarint);
constexpr uint32_t kTrack = tag(11, Wire::kVarint);
constexpr uint32_t kCounterValue = tag(44, Wire::kFixed64);
constexpr uint32_t kFlow = tag(47, Wire::kFixed64);
constexpr uint32_t kLastFlow = tag(48, Wire::kFixed64);
constexpr uint32_t kAnnotationName = tag(1, Wire::kVarint);  // of DebugAnnotation
constexpr uint32_t kIntValue = tag(4, Wire::kVarint);
constexpr uint32_t kDoubleValue = tag(5, Wire::kFixed64);
constexpr uint32_t kStringNumber = tag(17, Wire::kVarint);

constexpr uint64_t kSliceBegin = 1, kSliceEnd = 2, kCounter = 4;
constexpr uint64_t kOurSequence = 1;
constexpr uint64_t kNeedsState = 2;  // names by number

void append_varint(std::string& out, uint64_t value) {
  char bytes[10];
  size_t n = 0;
  for (; value >= 0x80; value >>= 7) bytes[n++] = static_cast<char>(value | 0x80);
  bytes[n++] = static_cast<char>(value);
  out.append(bytes, n);
}

void append_number(std::string& out, uint32_t field, uint64_t value) {
  append_varint(out, field);
  append_varint(out, value);
}

template <typename T>
void append_fixed(std::string& out, uint32_t field, T value) {
  static_assert(sizeof value == 8);
  append_varint(out, field);
  char bytes[8];
  std::memcpy(bytes, &value, sizeof bytes);  // little-endian, as the machines are that this runs on
  out.append(bytes, sizeof bytes);
}

void append_bytes(std::string& out, uint32_t field, const std::string& bytes) {
  append_varint(out, field);
  append_varint(out, bytes.size());
  out += bytes;
}

size_t varint_size(uint64_t value) noexcept {
  size_t n = 1;
  for (; value >= 0x80; value >>= 7) ++n;
  return n;
}

void append_packet(std::string& out, int64_t time, const std::string& event) {
  const auto at = static_cast<uint64_t>(time);
  const size_t size = 1 + varint_size(at) + 4 + 1 + varint_size(event.size()) + event.size();
  append_varint(out, kPacket);
  append_varint(out, size);
  append_number(out, kTimestamp, at);
  append_number(out, kSequence, kOurSequence);
  append_number(out, kFlags, kNeedsState);
  append_bytes(out, kTrackEvent, event);
}

void append_annotation(std::string& out, const PerfettoSlices::Extra& extra, size_t row,
                       std::string& scratch) {
  scratch.clear();
  append_number(scratch, kAnnotationName, extra.name);
  if (extra.values.type == CellType::kF64)
    append_fixed(scratch, kDoubleValue, extra.values.cell<double>(row));
  else if (extra.form == PerfettoSlices::Form::kInterned)
    append_number(scratch, kStringNumber, static_cast<uint64_t>(extra.values.integer(row)));
  else
    append_number(scratch, kIntValue, static_cast<uint64_t>(extra.values.integer(row)));
  append_bytes(out, kAnnotation, scratch);
}

}  // namespace

void PerfettoSlices::arrange() {
  is_arranged_ = true;
  bounds_.assign(tracks_.size() + 1, 0);
  const auto track_of = [&](const Kind& kind, size_t row) {
    return std::min(static_cast<size_t>(kind.track.integer(row)), tracks_.size() - 1);
  };
  size_t total = 0;
  for (const Kind& kind : kinds_) {
    total += kind.rows;
    for (size_t row = 0; row < kind.rows; ++row) ++bounds_[track_of(kind, row) + 1];
  }
  for (size_t i = 0; i < tracks_.size(); ++i) bounds_[i + 1] += bounds_[i];
  slices_.resize(total);
  std::vector<size_t> next(bounds_.begin(), bounds_.end() - 1);
  for (size_t k = 0; k < kinds_.size(); ++k) {
    const Kind& kind = kinds_[k];
    for (size_t row = 0; row < kind.rows; ++row)
      slices_[next[track_of(kind, row)]++] = {kind.start[row], std::max(kind.start[row], kind.end[row]),
                                              static_cast<uint32_t>(k), static_cast<uint32_t>(row)};
  }
  const auto opens_before = [](const Slice& a, const Slice& b) {
    return a.start != b.start ? a.start < b.start : a.end > b.end;
  };
  for (size_t i = 0; i < tracks_.size(); ++i) {
    const auto first = slices_.begin() + static_cast<ptrdiff_t>(bounds_[i]);
    const auto last = slices_.begin() + static_cast<ptrdiff_t>(bounds_[i + 1]);
    if (!std::is_sorted(first, last, opens_before)) std::stable_sort(first, last, opens_before);
  }
}

void PerfettoSlices::begin(std::string& out, const Slice& slice, uint64_t track) {
  const Kind& kind = kinds_[slice.kind];
  event_.clear();
  append_number(event_, kType, kSliceBegin);
  append_number(event_, kTrack, track);
  append_number(event_, kEventCategory, kind.category);
  append_number(event_, kName, static_cast<uint64_t>(kind.name.integer(slice.row)));
  for (const Extra& extra : kind.extras) {
    if (extra.shown && !extra.shown[slice.row]) continue;
    if (extra.form == Form::kFlow || extra.form == Form::kLastFlow)
      append_fixed(event_, extra.form == Form::kFlow ? kFlow : kLastFlow, extra.values.integer(slice.row));
    else
      append_annotation(event_, extra, slice.row, annotation_);
  }
  append_packet(out, slice.start, event_);
}

void PerfettoSlices::end(std::string& out, int64_t time, uint64_t track) {
  event_.clear();
  append_number(event_, kType, kSliceEnd);
  append_number(event_, kTrack, track);
  append_packet(out, time, event_);
}

std::string PerfettoSlices::next(size_t bytes) {
  if (!is_arranged_) arrange();
  std::string out;
  while (track_ < tracks_.size() && out.size() < bytes) {
    const uint64_t track = tracks_[track_];
    const bool is_over = at_ == bounds_[track_ + 1];
    while (!open_.empty() && (is_over || open_.back() <= slices_[at_].start)) {
      end(out, open_.back(), track);
      open_.pop_back();
    }
    if (is_over) {
      ++track_;
      continue;
    }
    begin(out, slices_[at_], track);
    open_.push_back(slices_[at_].end);
    ++at_;
  }
  return out;
}

void append_perfetto_counter(std::string& out, uint64_t track, const int64_t* times, const double* values,
                             size_t count) {
  std::string event;
  for (size_t i = 0; i < count; ++i) {
    event.clear();
    append_number(event, kType, kCounter);
    append_number(event, kTrack, track);
    append_fixed(event, kCounterValue, values[i]);
    append_packet(out, times[i], event);
  }
}

}  // namespace cuptiprof
