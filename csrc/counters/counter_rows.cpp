#include "counters/counter_rows.h"

#include <algorithm>
#include <new>

namespace cuptiprof {

CounterRows::CounterRows(std::vector<uint32_t> group_sizes, size_t bytes)
    : x_group_sizes(std::move(group_sizes)) {
  const size_t widest =
      x_group_sizes.empty() ? 0 : *std::max_element(x_group_sizes.begin(), x_group_sizes.end());
  x_max_rows = std::max<size_t>(bytes / (sizeof(CounterRow) + widest * sizeof(double)), 16);
  x_max_values = x_max_rows * widest;
  x_row_data.reset(static_cast<CounterRow*>(std::malloc(x_max_rows * sizeof(CounterRow))));
  x_value_data.reset(static_cast<double*>(std::malloc(std::max<size_t>(x_max_values, 1) * sizeof(double))));
  if (!x_row_data || !x_value_data) throw std::bad_alloc();
}

bool CounterRows::add(const CounterRow& row, std::span<const double> values) noexcept {
  const std::lock_guard lock(x_mutex);
  if (x_rows == x_max_rows || x_values + values.size() > x_max_values) return false;
  x_row_data[x_rows++] = row;
  std::copy(values.begin(), values.end(), x_value_data.get() + x_values);
  x_values += values.size();
  return true;
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
