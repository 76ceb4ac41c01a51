// A filter over finished columns: Result.filter() and the selection at the end of a session. On a user's
// thread, without the GIL.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "filter/kernel_filter.h"

namespace cuptiprof {

// Columns of one kernels table. Optional ones may be empty: 0, no range, row order.
struct LaunchColumns {
  size_t rows = 0;
  std::span<const uint32_t> name;                                // codes into names
  std::span<const uint32_t> region, nvtx, start_end, operators;  // codes into ranges
  std::span<const uint32_t> device, context, stream, thread, step;
  std::span<const uint32_t> config;  // rows of configs
  std::span<const uint8_t>
      in_lines;  // by row: KernelFilter::matches_lines of its stack, and matches_module; empty: of none
  std::span<const uint32_t> order;  // correlation IDs: rows are judged in ascending order, ties in row order
  std::span<const LaunchView> configs;  // only grid, block and shared_memory are read
  std::span<const std::string> names;   // by code; only used codes are looked at
  std::span<const std::string> ranges;  // the same of those columns
};

// Sets mask[i] to 1 for each selected row, else 0. Codes must be within their lists (checked by the caller).
// Returns the number of launches that were refused because the counters were full (FilterState::overflowed).
uint64_t select_rows(const KernelFilter& filter, const LaunchColumns& columns, std::span<uint8_t> mask);

}  // namespace cuptiprof
