#include "store/store.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>

namespace cuptiprof {
namespace {

// Hashing and comparing bytes needs structs without uninitialised padding: the fields are copied into a
// packed key.
constexpr size_t kConfigBytes = [] {
  size_t n = 0;
#define CP_TABLE(table, time, doc)
#define CP_COLUMN(table, name, type, unit, doc) \
  if (std::string_view(#table) == "launch_configs") n += sizeof(column_types::type);
#include "store/schema.def"
#undef CP_TABLE
#undef CP_COLUMN
  return n;
}();

// What a text takes beside its bytes: its end, its view, its hash, its places in the table of hashes.
constexpr size_t kTextOverhead = 1 + sizeof(std::string_view) + 3 * sizeof(uint32_t);

// Of a copy, for what is written into it alone: rows of open regions.
constexpr size_t kCopyRoom = 1u << 20;

// A configuration's entry in the hash table that finds it again.
constexpr size_t kIndexBytes = sizeof(rows::launch_configs) + 4 * sizeof(void*);

struct PackedConfig {
  explicit PackedConfig(const rows::launch_configs& c) {
    char* at = bytes;
    auto put = [&at](const auto& field) {
      std::memcpy(at, &field, sizeof field);
      at += sizeof field;
    };
    put(c.grid_x), put(c.grid_y), put(c.grid_z), put(c.block_x), put(c.block_y), put(c.block_z);
    put(c.cluster_x), put(c.cluster_y), put(c.cluster_z), put(c.cluster_scheduling_policy);
    put(c.max_potential_cluster_size), put(c.max_active_clusters), put(c.registers_per_thread);
    put(c.static_shared_memory), put(c.dynamic_shared_memory), put(c.shared_memory_executed);
    put(c.local_memory_per_thread), put(c.local_memory_total), put(c.cache_config),
        put(c.shared_memory_config);
    put(c.shared_memory_carveout), put(c.shmem_limit_config), put(c.partitioned_global_cache),
        put(c.launch_type);
    put(c.device_launched);
    filled = static_cast<size_t>(at - bytes);
  }
  std::string_view view() const { return {bytes, filled}; }
  char bytes[kConfigBytes];
  size_t filled;
};

// Of the table kernels.
size_t config_column() {
  const auto columns = table_spec(TableId::kernels).columns;
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [](const ColumnSpec& c) { return c.name == std::string_view("config"); });
  return static_cast<size_t>(found - columns.begin());
}

}  // namespace

size_t Store::ConfigHash::operator()(const rows::launch_configs& c) const noexcept {
  return std::hash<std::string_view>{}(PackedConfig(c).view());
}

bool Store::ConfigEqual::operator()(const rows::launch_configs& a,
                                    const rows::launch_configs& b) const noexcept {
  return PackedConfig(a).view() == PackedConfig(b).view();
}

Store::Store(Keep keep, size_t budget_bytes, Losses& losses, std::shared_ptr<PageWarmer> warmer)
    : x_keep(keep), x_budget(budget_bytes), x_losses(losses), x_warmer(std::move(warmer)) {
  for (size_t t = 0; t < kTableCount; ++t) {
    const TableSpec& spec = table_spec(static_cast<TableId>(t));
    x_tables[t] = std::make_unique<Table>(spec, budget_bytes / spec.dense_row_bytes() + 1, x_warmer.get());
  }
}

std::unique_ptr<Store> Store::copy() const {
  auto out = std::make_unique<Store>(x_keep, x_budget + kCopyRoom, x_losses);
  out->x_strings.copy_from(x_strings);
  for (size_t t = 0; t < kTableCount; ++t) out->x_tables[t]->copy_from(*x_tables[t]);
  out->x_row_bytes_used = x_row_bytes_used;
  out->x_config_bytes = x_config_bytes;
  out->x_lost_config = x_lost_config;
  out->x_is_kernel_name = x_is_kernel_name;
  return out;
}

uint32_t Store::config_id(const rows::launch_configs& config) {
  const auto found = x_configs.find(config);
  if (found != x_configs.end()) return found->second;
  Table& t = table(TableId::launch_configs);
  const size_t bytes = t.row_bytes() + kIndexBytes;
  // Configurations are not evicted with rows: those that stay refer to them by index (age).
  if (x_config_bytes + bytes > x_budget / kConfigShare) return lost_config();
  if (used_bytes() + bytes > x_budget && !make_room(bytes)) return lost_config();
  const auto id = static_cast<uint32_t>(t.rows());
  if (!write(t, config)) return lost_config();
  x_configs.emplace(config, id);
  x_row_bytes_used += kIndexBytes;
  x_config_bytes += bytes;
  return id;
}

uint32_t Store::lost_config() {
  count(x_losses.configs_lost);
  if (!x_lost_config) {
    Table& t = table(TableId::launch_configs);
    const auto id = static_cast<uint32_t>(t.rows());
    if (!write(t, rows::launch_configs{})) return 0;
    x_lost_config = id;
  }
  return *x_lost_config;
}

uint32_t Store::lost_text() {
  count(x_losses.texts_lost);
  return x_strings.intern(kLostText);
}

template <typename Visit>
void Store::each_text_column(Visit&& visit) {
  for (auto& t : x_tables) {
    const auto columns = t->spec().columns;
    for (size_t c = 0; c < columns.size(); ++c)
      if (columns[c].type == ColumnType::kStr && t->in_use(c) && t->rows() != 0)
        visit(reinterpret_cast<uint32_t*>(t->column(c)), t->rows());
  }
}

std::vector<uint8_t> Store::texts_of_rows(const std::vector<uint32_t>& kept) {
  std::vector<uint8_t> used(x_strings.size(), 0);
  used[0] = 1;
  for (const uint32_t id : kept) used[id] = 1;
  each_text_column([&](const uint32_t* ids, size_t rows) {
    for (size_t i = 0; i < rows; ++i) used[ids[i]] = 1;
  });
  return used;
}

size_t Store::bytes_of_texts(const std::vector<uint8_t>& used) const {
  size_t bytes = 0;
  for (uint32_t id = 0; id < used.size(); ++id)
    if (used[id]) bytes += x_strings.at(id).size() + kTextOverhead;
  return bytes;
}

std::vector<uint8_t> Store::configs_of_rows() {
  std::vector<uint8_t> used(table(TableId::launch_configs).rows(), 0);
  const Table& kernels = table(TableId::kernels);
  const uint32_t* of_row = reinterpret_cast<const uint32_t*>(kernels.column(config_column()));
  for (size_t i = 0; i < kernels.rows(); ++i) used[of_row[i]] = 1;
  return used;
}

size_t Store::bytes_of_configs(const std::vector<uint8_t>& used) {
  const auto count = static_cast<size_t>(std::count(used.begin(), used.end(), 1));
  return count * (table(TableId::launch_configs).row_bytes() + kIndexBytes);
}

std::vector<uint32_t> Store::age(const std::vector<uint32_t>& kept) {
  std::vector<uint8_t> texts = texts_of_rows(kept), configs = configs_of_rows();
  const auto too_much = [&] {
    return (texts_want_to_age() && bytes_of_texts(texts) > x_budget / kTextShare / 2) ||
           (configs_want_to_age() && bytes_of_configs(configs) > x_budget / kConfigShare / 2);
  };
  while (too_much() && evict_oldest()) {
    texts = texts_of_rows(kept);
    configs = configs_of_rows();
  }
  renumber_configs(configs);
  return renumber_texts(texts);
}

std::vector<uint32_t> Store::renumber_texts(const std::vector<uint8_t>& used) {
  StringTable next;
  std::vector<uint32_t> now(used.size(), StringTable::kNone);
  std::vector<bool> is_kernel_name;
  for (uint32_t id = 0; id < used.size(); ++id) {
    if (!used[id]) continue;
    now[id] = next.intern(x_strings.at(id));
    is_kernel_name.resize(now[id] + 1, false);
    is_kernel_name[now[id]] = this->is_kernel_name(id);
  }
  each_text_column([&](uint32_t* ids, size_t rows) {
    for (size_t i = 0; i < rows; ++i) ids[i] = now[ids[i]];
  });
  x_strings = std::move(next);
  x_is_kernel_name = std::move(is_kernel_name);
  x_aged_count =
      x_strings.size();  // where what stays takes nearly all of the room, not with every buffer again
  return now;
}

void Store::renumber_configs(const std::vector<uint8_t>& used) {
  Table& configs = table(TableId::launch_configs);
  std::vector<uint32_t> now(used.size());
  uint32_t stay = 0;
  for (size_t id = 0; id < used.size(); ++id) now[id] = used[id] ? stay++ : 0;
  for (auto at = x_configs.begin(); at != x_configs.end();) {
    if (used[at->second]) {
      at->second = now[at->second];
      ++at;
      continue;
    }
    x_config_bytes -= configs.row_bytes() + kIndexBytes;
    x_row_bytes_used -= kIndexBytes;
    at = x_configs.erase(at);
  }
  if (x_lost_config) x_lost_config = used[*x_lost_config] ? std::optional(now[*x_lost_config]) : std::nullopt;
  x_row_bytes_used -= (used.size() - stay) * configs.row_bytes();
  configs.compact(used.data());
  Table& kernels = table(TableId::kernels);
  uint32_t* of_row = reinterpret_cast<uint32_t*>(kernels.column(config_column()));
  for (size_t i = 0; i < kernels.rows(); ++i) of_row[i] = now[of_row[i]];
  x_aged_config_bytes = x_config_bytes;
}

bool Store::make_room(size_t bytes) {
  if (x_keep != Keep::kLatest) return false;
  while (x_row_bytes_used + x_strings.bytes() + bytes > x_budget)
    if (!evict_oldest()) return false;
  return true;
}

// All tables up to one time, so that what is kept of each is of the same stretch: else a table of few rows
// (the regions of a run) would go whole whenever its first row is the oldest of all. The table that has a
// sixty-fourth of the budget in the oldest rows says the time: rare enough to be cheap, small enough to keep
// nearly all of the budget used.
bool Store::evict_oldest() {
  Table *largest = nullptr, *first = nullptr;
  size_t largest_bytes = 0, batch = 0;
  int64_t until = std::numeric_limits<int64_t>::max();
  for (auto& t : x_tables) {
    if (t->spec().time_column < 0 || t->rows() == 0) continue;
    const size_t bytes = t->rows() * t->row_bytes();
    if (bytes > largest_bytes) largest = t.get(), largest_bytes = bytes;
    const size_t rows = std::max<size_t>(x_budget / 64 / t->row_bytes(), 1);
    if (rows >= t->rows() || t->age_at(rows) >= until) continue;
    first = t.get(), batch = rows, until = t->age_at(rows);
  }
  if (!largest) return false;
  if (!first) {  // many small ones, beside texts that take the room
    first = largest, batch = (largest->rows() + 1) / 2;
    until = largest->age_at(batch - 1);
  }
  for (auto& t : x_tables) {
    if (t->spec().time_column < 0) continue;
    const size_t n = t.get() == first ? batch : t->rows_before(until);
    t->evict(n);
    x_row_bytes_used -= n * t->row_bytes();
    count(x_losses.budget_evicted, n);
  }
  return true;
}

}  // namespace cuptiprof
