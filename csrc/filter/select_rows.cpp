#include "filter/select_rows.h"

#include <algorithm>
#include <numeric>

#include "filter/filter_state.h"

namespace cuptiprof {
namespace {

bool region_verdict(const KernelFilter& filter, std::string_view path) {
  const std::vector<std::string> names = split_region_path(path);
  const std::vector<std::string_view> views(names.begin(), names.end());
  return filter.matches_ranges({path, views, views, {}, {}});
}

std::vector<uint32_t> launch_order(std::span<const uint32_t> order) {
  std::vector<uint32_t> rows(order.size());
  std::iota(rows.begin(), rows.end(), 0u);
  std::stable_sort(rows.begin(), rows.end(), [&](uint32_t a, uint32_t b) { return order[a] < order[b]; });
  return rows;
}

uint32_t at(std::span<const uint32_t> column, size_t row) { return column.empty() ? 0 : column[row]; }

}  // namespace

uint64_t select_rows(const KernelFilter& filter, const LaunchColumns& columns, std::span<uint8_t> mask) {
  // Verdicts once for every code that occurs.
  std::vector<NameVerdict> names(columns.names.size());
  std::vector<uint8_t> seen(columns.names.size());
  for (const uint32_t code : columns.name) {
    if (seen[code]) continue;
    seen[code] = 1;
    names[code] = filter.name_verdict(NameParts(columns.names[code]));
  }
  const NameVerdict nameless = columns.name.empty() ? filter.name_verdict(NameParts("")) : NameVerdict{};
  std::vector<uint8_t> regions(columns.regions.size());
  seen.assign(columns.regions.size(), 0);
  const bool outside = region_verdict(filter, {});
  if (filter.needs_regions()) {
    for (const uint32_t code : columns.region) {
      if (seen[code]) continue;
      seen[code] = 1;
      regions[code] = region_verdict(filter, columns.regions[code]);
    }
  }
  const auto launch_at = [&](size_t row) {
    LaunchView launch = columns.config.empty() ? LaunchView{} : columns.configs[columns.config[row]];
    launch.device = at(columns.device, row);
    launch.context = at(columns.context, row);
    launch.stream = at(columns.stream, row);
    launch.thread = at(columns.thread, row);
    launch.step = at(columns.step, row);
    return launch;
  };
  const auto name_at = [&](size_t row) -> const NameVerdict& {
    return columns.name.empty() ? nameless : names[columns.name[row]];
  };
  const auto ranges_at = [&](size_t row) {
    if (filter.needs_lines() && (columns.in_lines.empty() || columns.in_lines[row] == 0)) return false;
    if (!filter.needs_regions()) return true;
    return columns.region.empty() ? outside : regions[columns.region[row]] != 0;
  };

  if (!filter.is_stateful()) {
    for (size_t row = 0; row < columns.rows; ++row)
      mask[row] = filter.matches_stateless(launch_at(row), name_at(row), ranges_at(row));
    return 0;
  }
  FilterState state(filter);
  const auto judge = [&](size_t row) {
    mask[row] = state.select(filter, launch_at(row), name_at(row), ranges_at(row));
  };
  if (std::is_sorted(columns.order.begin(), columns.order.end())) {
    for (size_t row = 0; row < columns.rows; ++row) judge(row);
  } else {
    for (const uint32_t row : launch_order(columns.order)) judge(row);
  }
  return state.overflowed();
}

}  // namespace cuptiprof
