// What was measured: one row a range that was read, with the values of its pass group. Room for it is
// reserved once, so that a launch callback can add a row without allocating.
#pragma once
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace cuptiprof {

enum class Strategy : uint8_t {
#define CP_STRATEGY(enumerator, code, text) enumerator = code,
#include "base/codes.def"
};
enum class RangeKind : uint8_t {
#define CP_RANGE_KIND(enumerator, code, text) enumerator = code,
#include "base/codes.def"
};

struct CounterRow {
  int64_t start = 0, end = 0;     // run clock
  uint32_t name = 0, region = 0;  // string IDs of the selector
  uint32_t correlation = 0, thread = 0;
  uint32_t device = 0, context = 0, stream = 0;
  std::array<int32_t, 3> grid{}, block{};
  uint32_t sequence = 0;  // which range of its pass
  uint16_t group = 0;     // index of the pass group
  uint16_t passes = 0;    // times the work ran for it
  RangeKind kind = RangeKind::kLaunch;
};

class CounterRows {
 public:
  // `group_sizes[g]`: values in a row of group g.
  CounterRows(std::vector<uint32_t> group_sizes, size_t bytes, bool keep_latest);

  // How many rows were given up for want of room: this one, or the oldest quarter.
  [[nodiscard]] size_t add(const CounterRow& row, std::span<const double> values) noexcept;

  struct Taken {
    std::vector<CounterRow> rows;
    std::vector<double> values;     // of all rows, one after another
    std::vector<uint64_t> offsets;  // where each row's values begin
  };
  Taken take();
  void clear();
  size_t size() const;
  size_t group_size(uint16_t group) const { return x_group_sizes[group]; }

 private:
  size_t drop_oldest() noexcept;

  const std::vector<uint32_t> x_group_sizes;
  const bool x_keep_latest;
  mutable std::mutex x_mutex;  // guards the rest; no CUPTI call is made under it
  size_t x_max_rows, x_max_values, x_rows = 0, x_values = 0;
  struct Free {
    void operator()(void* p) const noexcept { std::free(p); }
  };
  // Never initialised as a whole: pages that are not used take no memory.
  std::unique_ptr<CounterRow[], Free> x_row_data;
  std::unique_ptr<double[], Free> x_value_data;
};

}  // namespace cuptiprof
