#include "store/live_sums.h"

#include <algorithm>
#include <numeric>

namespace cuptiprof {
namespace {

constexpr size_t kMaxName = 8192;  // bytes of a name that are kept

// CUpti_ActivityMemoryKind from DEVICE on; below are those of the host.
constexpr uint8_t kFirstDeviceMemory = 3;
constexpr uint8_t kAllocation = 1, kRelease = 2;

size_t place(TableId table, std::string_view column) {
  const auto& columns = table_spec(table).columns;
  return static_cast<size_t>(
      std::find_if(columns.begin(), columns.end(), [&](const auto& c) { return column == c.name; }) -
      columns.begin());
}

// The live rows of a column; null: it is not in use, and all are 0.
template <typename T>
const T* values(const Table& t, size_t column) {
  return t.in_use(column) ? reinterpret_cast<const T*>(t.column(column)) : nullptr;
}

// Start, end and device of the work of a table.
struct WorkColumns {
  WorkColumns(Table& t, TableId id)
      : start(values<int64_t>(t, place(id, "start"))),
        end(values<int64_t>(t, place(id, "end"))),
        device(values<uint32_t>(t, place(id, "device"))) {}
  uint32_t device_of(size_t row) const { return device ? device[row] : 0; }
  const int64_t *start, *end;
  const uint32_t* device;
};

void add(std::pair<WorkSum, WorkSum>& sums, int64_t ns, uint64_t bytes) {
  sums.first.add(ns, bytes);
  sums.second.add(ns, bytes);
}

}  // namespace

void NameSums::look_up(Store& store, uint32_t id) {
  std::string_view name = store.strings().at(id).substr(0, kMaxName);
  uint32_t text = x_texts.intern(name, kMaxBytes);
  if (text == StringTable::kNone) {
    name = kOthers;
    text = x_texts.intern(name);
  }
  if (text >= x_of_text.size()) x_of_text.resize(text + 1, 0);
  if (x_of_text[text] == 0) {
    x_names.push_back(x_texts.at(text));
    x_all.emplace_back();
    x_since.emplace_back();
    x_of_text[text] = static_cast<uint32_t>(x_names.size());
  }
  if (id >= x_of_store.size()) x_of_store.resize(id + 1, 0);
  x_of_store[id] = x_of_text[text];
}

std::vector<uint32_t> NameSums::longest(size_t most) const {
  std::vector<uint32_t> order(x_names.size());
  std::iota(order.begin(), order.end(), 0u);
  const size_t n = std::min(most, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(n), order.end(),
                    [&](uint32_t a, uint32_t b) { return x_all[a].ns > x_all[b].ns; });
  order.resize(n);
  return order;
}

std::vector<NamedSum> NameSums::take(size_t most) {
  std::vector<NamedSum> out;
  for (const uint32_t at : longest(most)) out.push_back({std::string(x_names[at]), x_all[at], x_since[at]});
  std::fill(x_since.begin(), x_since.end(), WorkSum{});
  return out;
}

std::vector<NamedSum> NameSums::standing(size_t most, size_t room) {
  x_told.resize(x_all.size());
  x_has_own.resize(x_all.size());
  for (const uint32_t at : longest(most)) {
    if (x_has_own[at] || x_own.size() >= room) continue;
    x_has_own[at] = true;
    x_own.push_back({at, x_told[at]});
  }
  x_told = x_all;
  WorkSum others;
  for (const WorkSum& sum : x_all) others += sum;
  std::vector<NamedSum> out;
  out.reserve(x_own.size() + 1);
  for (const auto& [at, before] : x_own) {
    WorkSum own = x_all[at];
    own -= before;
    others -= own;
    out.push_back({std::string(x_names[at]), own, {}});
  }
  out.push_back({std::string(kOthers), others, {}});
  return out;
}

void LiveSums::look(Store& store) {
  const std::lock_guard lock(x_mutex);
  kernels(store);
  copies(store);
  sets(store);
  memory(store);
}

void LiveSums::next_store() {
  const std::lock_guard lock(x_mutex);
  x_seen.fill(0);
  x_kernels.forget_store();
  x_regions.forget_store();
}

void LiveSums::forget_string_ids() {
  const std::lock_guard lock(x_mutex);
  x_kernels.forget_store();
  x_regions.forget_store();
}

LiveSums::Taken LiveSums::without_names() {
  Taken out = x_sums;
  out.kernel_names = x_kernels.names();
  out.region_names = x_regions.names();
  for (auto& [device, time] : x_busy) out.busy[device] = time.total();
  return out;
}

LiveSums::Taken LiveSums::standing(size_t most_names, size_t room) {
  const std::lock_guard lock(x_mutex);
  Taken out = without_names();
  out.kernels = x_kernels.standing(most_names, room);
  out.regions = x_regions.standing(most_names, room);
  return out;
}

LiveSums::Taken LiveSums::take(size_t most_names) {
  const std::lock_guard lock(x_mutex);
  Taken out = without_names();
  out.kernels = x_kernels.take(most_names);
  out.regions = x_regions.take(most_names);
  for (auto& [all, since] : x_sums.copies) since = {};
  x_sums.sets.second = {};
  return out;
}

size_t LiveSums::first_new(Table& table, TableId id) {
  uint64_t& seen = x_seen[static_cast<size_t>(id)];
  const uint64_t evicted = table.evicted();
  if (seen < evicted) {
    x_sums.missed += evicted - seen;
    seen = evicted;
  }
  const auto first = static_cast<size_t>(seen - evicted);
  seen = evicted + table.rows();
  return first;
}

void LiveSums::kernels(Store& store) {
  static const size_t name_at = place(TableId::kernels, "name"),
                      region_at = place(TableId::kernels, "region");
  Table& t = store.table(TableId::kernels);
  size_t row = first_new(t, TableId::kernels);
  if (row == t.rows()) return;
  const WorkColumns work(t, TableId::kernels);
  const auto* name = values<uint32_t>(t, name_at);
  const auto* region = values<uint32_t>(t, region_at);
  for (; row < t.rows(); ++row) {
    const int64_t ns = work.end[row] - work.start[row];
    x_kernels.add(store, name[row], ns);
    x_regions.add(store, region[row], ns);
    busy(work.device_of(row)).add(work.start[row], work.end[row]);
  }
}

void LiveSums::copies(Store& store) {
  static const size_t bytes_at = place(TableId::memcpys, "bytes"),
                      kind_at = place(TableId::memcpys, "copy_kind");
  Table& t = store.table(TableId::memcpys);
  size_t row = first_new(t, TableId::memcpys);
  if (row == t.rows()) return;
  const WorkColumns work(t, TableId::memcpys);
  const auto* bytes = values<uint64_t>(t, bytes_at);
  const auto* kind = values<uint8_t>(t, kind_at);
  for (; row < t.rows(); ++row) {
    add(x_sums.copies[kind[row] < kCopyKinds ? kind[row] : 0], work.end[row] - work.start[row], bytes[row]);
    busy(work.device_of(row)).add(work.start[row], work.end[row]);
  }
}

void LiveSums::sets(Store& store) {
  static const size_t bytes_at = place(TableId::memsets, "bytes");
  Table& t = store.table(TableId::memsets);
  size_t row = first_new(t, TableId::memsets);
  if (row == t.rows()) return;
  const WorkColumns work(t, TableId::memsets);
  const auto* bytes = values<uint64_t>(t, bytes_at);
  for (; row < t.rows(); ++row) {
    add(x_sums.sets, work.end[row] - work.start[row], bytes[row]);
    busy(work.device_of(row)).add(work.start[row], work.end[row]);
  }
}

void LiveSums::memory(Store& store) {
  static const size_t bytes_at = place(TableId::memory, "bytes"),
                      kind_at = place(TableId::memory, "memory_kind"),
                      operation_at = place(TableId::memory, "operation");
  Table& t = store.table(TableId::memory);
  size_t row = first_new(t, TableId::memory);
  if (row == t.rows()) return;
  const auto* bytes = values<uint64_t>(t, bytes_at);
  const auto* kind = values<uint8_t>(t, kind_at);
  const auto* operation = values<uint8_t>(t, operation_at);
  for (; row < t.rows(); ++row) {
    if (kind[row] < kFirstDeviceMemory) continue;
    const auto size = static_cast<int64_t>(bytes[row]);
    if (operation[row] == kAllocation)
      x_sums.allocated += size;
    else if (operation[row] == kRelease)
      x_sums.allocated -= size;
    else
      continue;
    ++x_sums.allocations;
  }
}

}  // namespace cuptiprof
