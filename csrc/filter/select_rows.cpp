#include "filter/select_rows.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "filter/filter_state.h"
#include "filter/open_ranges.h"
#include "filter/range_texts.h"

namespace cuptiprof {
namespace {

bool ranges_verdict(const KernelFilter& filter, std::string_view path, std::string_view nvtx,
                    std::string_view start_end, std::string_view operators) {
  std::vector<ScopeLabel> beside = split_ranges(nvtx, '/');
  std::vector<ScopeLabel> in_path = label_path(path, beside);
  for (std::string& name : split_region_path(operators))
    beside.push_back({ScopeSource::kOperator, {}, std::move(name)});
  const OpenRanges open(std::move(in_path), std::move(beside), split_ranges(start_end, ','));
  return filter.matches_ranges(open.view());
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
  const auto text_of = [&](std::span<const uint32_t> codes, size_t row) {
    return codes.empty() ? std::string_view() : std::string_view(columns.ranges[codes[row]]);
  };
  // By the codes of its four texts; the last one asked for again is the usual case.
  std::map<std::array<uint32_t, 4>, bool> verdicts;
  std::array<uint32_t, 4> last{};
  std::optional<bool> last_verdict;
  const auto ranges_at = [&](size_t row) {
    if ((filter.needs_lines() || filter.needs_modules()) &&
        (columns.in_lines.empty() || columns.in_lines[row] == 0))
      return false;
    if (!filter.needs_regions()) return true;
    const std::array key{at(columns.region, row), at(columns.nvtx, row), at(columns.start_end, row),
                         at(columns.operators, row)};
    if (last_verdict && key == last) return *last_verdict;
    const auto [found, is_new] = verdicts.try_emplace(key);
    if (is_new)
      found->second = ranges_verdict(filter, text_of(columns.region, row), text_of(columns.nvtx, row),
                                     text_of(columns.start_end, row), text_of(columns.operators, row));
    last = key;
    last_verdict = found->second;
    return found->second;
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
