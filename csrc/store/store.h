// The tables of one result under one byte budget, with their strings and launch configurations.
// Written by one thread (the decoder); read by others only after it was handed over.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "base/intern.h"
#include "store/losses.h"
#include "store/rows.h"
#include "store/table.h"

namespace cuptiprof {

enum class Keep : uint8_t { kFirst, kLatest, kSpill };

class Store {
 public:
  Store(Keep keep, size_t budget_bytes, Losses& losses);

  StringTable& strings() { return x_strings; }
  Table& table(TableId id) { return *x_tables[static_cast<size_t>(id)]; }

  // Appends one row. False: the budget (or the machine) had no room and the row was counted as lost.
  template <typename Row>
  bool append(const Row& row);

  // Index into launch_configs of this configuration.
  uint32_t config_id(const rows::launch_configs& config);

  size_t used_bytes() const { return x_row_bytes_used + x_strings.bytes(); }
  size_t budget_bytes() const { return x_budget; }
  // keep="spill": nearly full, time to write it out.
  bool wants_spill() const { return x_keep == Keep::kSpill && used_bytes() > x_budget / 4 * 3; }

 private:
  bool make_room(size_t bytes);
  bool evict_oldest();

  struct ConfigHash {
    size_t operator()(const rows::launch_configs& c) const noexcept;
  };
  struct ConfigEqual {
    bool operator()(const rows::launch_configs& a, const rows::launch_configs& b) const noexcept;
  };

  Keep x_keep;
  size_t x_budget;
  size_t x_row_bytes_used = 0;
  Losses& x_losses;
  StringTable x_strings;
  std::array<std::unique_ptr<Table>, kTableCount> x_tables;
  std::unordered_map<rows::launch_configs, uint32_t, ConfigHash, ConfigEqual> x_configs;
};

namespace detail {

template <typename T>
inline void put(Table& t, size_t c, size_t row, T value) {
  reinterpret_cast<T*>(t.base(c))[row] = value;
}

// write_columns(table, row index, struct): one overload a table.
struct Writers {
  static void begin(Table&, size_t) {
#define CP_TABLE(table, time, doc)                                                \
  }                                                                               \
  static void write(Table& out, size_t at, const rows::table& r) {                \
    size_t c = 0;                                                                 \
    static_cast<void>(c);
#define CP_COLUMN(table, name, type, unit, doc) put<column_types::type>(out, c++, at, r.name);
#include "store/schema.def"
#undef CP_TABLE
#undef CP_COLUMN
  }
};

}  // namespace detail

template <typename Row>
inline bool Store::append(const Row& row) {
  Table& t = table(Row::kId);
  if (x_row_bytes_used + x_strings.bytes() + t.row_bytes() > x_budget && !make_room(t.row_bytes())) {
    count(x_keep == Keep::kSpill ? x_losses.spill_dropped : x_losses.budget_evicted);
    return false;
  }
  size_t at;
  try {
    at = t.append_row();
  } catch (const std::bad_alloc&) {
    count(x_losses.budget_evicted);
    return false;
  }
  x_row_bytes_used += t.row_bytes();
  detail::Writers::write(t, at, row);
  return true;
}

}  // namespace cuptiprof
