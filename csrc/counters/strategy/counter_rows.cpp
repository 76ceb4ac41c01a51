#include "counters/strategy/counter_rows.h"

#include <algorithm>
#include <new>

namespace cuptiprof {

CounterRows::CounterRows(std::vector<uint32_t> group_sizes, size_t bytes, bool keep_latest)
    : x_group_sizes(std::move(group_sizes)), x_keep_latest(keep_latest) {
  const size_t widest =
      x_group_sizes.empty() ? 0 : *std::max_element(x_group_sizes.begin(), x_group_sizes.end());
  x_max_rows = std::max<size_t>(bytes / (sizeof(CounterRow) + widest * sizeof(double)), 16);
  x_max_values = x_max_rows * widest;
  x_row_data.reset(static_cast<CounterRow*>(std::malloc(x_max_rows * sizeof(CounterRow))));
  x_value_data.reset(static_cast<double*>(std::malloc(std::max<size_t>(x_max_values, 1) * sizeof(double))));
  if (!x_row_data || !x_value_data) throw std::bad_alloc();
}

size_t CounterRows::add(const CounterRow& row, std::span<const double> values) noexcept {
  const std::lock_guard lock(x_mutex);
  size_t lost = 0;
  if (x_rows == x_max_rows || x_values + values.size() > x_max_values) {
    if (!x_keep_latest) return 1;
    lost = drop_oldest();
  }
  x_row_data[x_rows++] = row;
  std::copy(values.begin(), values.end(), x_value_data.get() + x_values);
  x_values += values.size();
  return lost;
}

// Under the lock. A quarter at a time, so that a row costs little on average.
size_t CounterRows::drop_oldest() noexcept {
  const size_t rows = (x_rows + 3) / 4;
  size_t values = 0;
  for (size_t i = 0; i < rows; ++i) values += x_group_sizes[x_row_data[i].group];
  std::move(x_row_data.get() + rows, x_row_data.get() + x_rows, x_row_data.get());
  std::move(x_value_data.get() + values, x_value_data.get() + x_values, x_value_data.get());
  x_rows -= rows;
  x_values -= values;
  return rows;
}

CounterRows::Taken CounterRows::take() {
  const std::lock_guard lock(x_mutex);
  Taken out;
  out.rows.assign(x_row_data.get(), x_row_data.get() + x_rows);
  out.values.assign(x_value_data.get(), x_value_data.get() + x_values);
  out.offsets.reserve(x_rows);
  uint64_t at = 0;
  for (const CounterRow& row : out.rows) {
    out.offsets.push_back(at);
    at += x_group_sizes[row.group];
  }
  x_rows = x_values = 0;
  return out;
}

void CounterRows::clear() {
  const std::lock_guard lock(x_mutex);
  x_rows = x_values = 0;
}

size_t CounterRows::size() const {
  const std::lock_guard lock(x_mutex);
  return x_rows;
}

}  // namespace cuptiprof
