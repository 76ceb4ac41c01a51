#include "collect/regions/nvtx_markers.h"

#include <algorithm>

#include "collect/regions/regions.h"
#include "collect/regions/scope_labels.h"

namespace cuptiprof {
namespace {

constexpr size_t kMaxOpen = 1u << 16;  // started and never ended

}  // namespace

NvtxMarkers::~NvtxMarkers() {
  for (auto& [number, range] : x_open) delete range.metadata;
}

void NvtxMarkers::apply(Store& store, const Event& e, uint32_t tid, int64_t time) {
  if (e.kind == EventKind::kMark) {
    const Range mark{e.id, tid, time, e.metadata};
    write(store, mark, time, false);
    delete e.metadata;
  } else if (e.kind == EventKind::kRangeStart) {
    if (x_open.size() >= kMaxOpen || !x_open.try_emplace(e.task, Range{e.id, tid, time, e.metadata}).second) {
      delete e.metadata;
      return count(x_losses.budget_evicted);
    }
    x_set_is_old = true;
  } else {
    const auto found = x_open.find(e.task);
    if (found == x_open.end()) return;  // started before the session
    write(store, found->second, time, false);
    delete found->second.metadata;
    x_open.erase(found);
    x_set_is_old = true;
  }
}

void NvtxMarkers::write_open(Store& store, int64_t now) const {
  for (const auto& [number, range] : x_open) write(store, range, now, true);
}

void NvtxMarkers::write(Store& store, const Range& range, int64_t end, bool is_open) {
  const ScopeLabel label = scope_label(range.label);
  rows::markers row;
  row.start = range.start;
  row.end = std::max(end, range.start);
  row.name = store.text(label.name);
  row.domain = store.text(label.domain);
  row.category = store.text("nvtx");
  row.thread = range.tid;
  row.metadata = range.metadata ? store.text(range.metadata->json) : 0;
  row.is_open = is_open;
  store.append(row);
}

std::vector<uint32_t> NvtxMarkers::age(size_t most) {
  std::vector<uint32_t> now(x_sets.size(), kLostSet);
  std::vector<std::vector<uint32_t>> sets;
  x_numbers.clear();
  for (uint32_t set = 0; set < x_sets.size(); ++set) {
    if (set > kLostSet && set != x_set && set + most < x_sets.size()) continue;
    now[set] = static_cast<uint32_t>(sets.size());
    sets.push_back(std::move(x_sets[set]));
    if (set > kLostSet) x_numbers.emplace(sets.back(), now[set]);
  }
  x_sets = std::move(sets);
  x_set = now[x_set];
  return now;
}

uint32_t NvtxMarkers::open_set() {
  if (!x_set_is_old) return x_set;
  x_set_is_old = false;
  std::vector<uint32_t> labels;
  for (const auto& [number, range] : x_open) labels.push_back(range.label);
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  if (labels.empty()) return x_set = 0;
  const auto found = x_numbers.find(labels);
  if (found != x_numbers.end()) return x_set = found->second;
  x_set = static_cast<uint32_t>(x_sets.size());
  x_sets.push_back(labels);
  x_numbers.emplace(std::move(labels), x_set);
  return x_set;
}

}  // namespace cuptiprof
