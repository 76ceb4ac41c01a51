// The tables of one result under one byte budget, with their strings and launch configurations.
// Written by one thread (the decoder), then handed over by take() or stop() of the session: from there on it
// belongs to the result, whose NumPy arrays look into it. Nothing here is called by CUPTI's callbacks:
// appending can allocate.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/string_table.h"
#include "store/losses.h"
#include "store/page_warmer.h"
#include "store/rows.h"
#include "store/table.h"

namespace cuptiprof {

// What happens to rows when the budget is used up.
enum class Keep : uint8_t {
  kFirst,   // new ones are left out
  kLatest,  // the oldest are evicted
  kSpill,   // the store was to be written out before (wants_spill); what comes too late is left out
};

class Store {
 public:
  // warmer: may be null; kept alive by the store.
  Store(Keep keep, size_t budget_bytes, Losses& losses, std::shared_ptr<PageWarmer> warmer = nullptr);

  StringTable& strings() { return x_strings; }
  Table& table(TableId id) { return *x_tables[static_cast<size_t>(id)]; }

  // Appends one row. False: the budget (or the machine) had no room and the row was counted as lost.
  template <typename Row>
  bool append(const Row& row);

  // ID of a text. One that is new and has no room is counted, and is kLostText instead.
  uint32_t text(std::string_view text) {
    const uint32_t id = x_strings.intern(text, x_budget / kTextShare);
    return id != StringTable::kNone ? id : lost_text();
  }

  // That of kLostText, which is counted.
  uint32_t lost_text();

  // Index into launch_configs of this configuration. One that is new and has no room is counted, and is that
  // of one that is 0 throughout.
  uint32_t config_id(const rows::launch_configs& config);

  // Whether texts or configurations take so much of their room that those that no row has should go (age).
  bool wants_to_age() const { return texts_want_to_age() || configs_want_to_age(); }
  // Texts and configurations that no row has any more go, and with them the oldest rows, until half of the
  // room for each is free: so those of today are known however many there have been. `kept`: IDs of texts
  // that stay whatever the rows have. Returns the new ID of each; kNone: it has gone. Whoever remembers IDs,
  // of configurations too, must forget them or take the new ones.
  std::vector<uint32_t> age(const std::vector<uint32_t>& kept);

  // Every kernel name that came, selected or not: for "no kernel matched; the nearest names were".
  void note_kernel_name(uint32_t id) {
    if (x_is_kernel_name.size() <= id) x_is_kernel_name.resize(id + kMoreNames, false);
    x_is_kernel_name[id] = true;
  }
  bool is_kernel_name(uint32_t id) const { return id < x_is_kernel_name.size() && x_is_kernel_name[id]; }

  // The rows and strings as they are now, to be read while this one goes on: configurations are not looked
  // for in it. Throws std::bad_alloc.
  std::unique_ptr<Store> copy() const;

  size_t used_bytes() const { return x_row_bytes_used + x_strings.bytes(); }
  size_t budget_bytes() const { return x_budget; }
  // keep="spill": nearly full, time to write it out.
  bool wants_spill() const {
    const auto nearly = [](size_t bytes) { return bytes / 4 * 3; };
    return x_keep == Keep::kSpill &&
           (used_bytes() > nearly(x_budget) || x_strings.bytes() > nearly(x_budget / kTextShare) ||
            x_config_bytes > nearly(x_budget / kConfigShare));
  }

 private:
  static constexpr std::string_view kLostText = "(name lost)";
  static constexpr size_t kTextShare = 4;         // of the budget: a quarter
  static constexpr size_t kConfigShare = 8;       // an eighth
  static constexpr size_t kTextsOfBuffer = 2048;  // that come between two looks, at most about
  static constexpr uint32_t kMoreNames = 1024;    // that x_is_kernel_name grows by

  bool texts_want_to_age() const {
    const size_t room = x_budget / kTextShare;
    return x_strings.size() > x_aged_count + x_aged_count / 8 &&
           (x_strings.bytes() > room / 4 * 3 || x_strings.bytes_with(kTextsOfBuffer) > room);
  }
  bool configs_want_to_age() const {
    return x_config_bytes > x_budget / kConfigShare / 4 * 3 &&
           x_config_bytes > x_aged_config_bytes + x_aged_config_bytes / 8;
  }
  // The texts and configurations of rows alone, under new IDs.
  std::vector<uint32_t> renumber_texts(const std::vector<uint8_t>& used);
  void renumber_configs(const std::vector<uint8_t>& used);
  uint32_t lost_config();
  // False: the machine had no memory, and the row was counted as lost.
  template <typename Row>
  bool write(Table& t, const Row& row);
  // Whether so many bytes now fit into the budget; evicts for that where the newest rows are kept.
  bool make_room(size_t bytes);
  bool evict_oldest();
  // By ID, whether a row has it, or it is one of `kept`.
  std::vector<uint8_t> texts_of_rows(const std::vector<uint32_t>& kept);
  // By index, whether a kernel has it.
  std::vector<uint8_t> configs_of_rows();
  size_t bytes_of_texts(const std::vector<uint8_t>& used) const;
  size_t bytes_of_configs(const std::vector<uint8_t>& used);
  // Columns of text that are in use: visit(first value, rows).
  template <typename Visit>
  void each_text_column(Visit&& visit);

  struct ConfigHash {
    size_t operator()(const rows::launch_configs& c) const noexcept;
  };
  struct ConfigEqual {
    bool operator()(const rows::launch_configs& a, const rows::launch_configs& b) const noexcept;
  };

  Keep x_keep;
  size_t x_budget;
  size_t x_aged_count = 0;         // texts that stayed when they were aged
  size_t x_row_bytes_used = 0;     // with the index of launch configurations
  size_t x_config_bytes = 0;       // of those
  size_t x_aged_config_bytes = 0;  // of those that stayed when they were aged
  std::optional<uint32_t> x_lost_config;
  Losses& x_losses;
  std::shared_ptr<PageWarmer> x_warmer;  // before the tables: they use it to the end
  StringTable x_strings;
  std::vector<bool> x_is_kernel_name;
  std::array<std::unique_ptr<Table>, kTableCount> x_tables;
  std::unordered_map<rows::launch_configs, uint32_t, ConfigHash, ConfigEqual> x_configs;
};

namespace detail {

template <typename T>
inline void put(Table& t, size_t c, size_t row, T value) {
  reinterpret_cast<T*>(t.base(c))[row] = value;
}

// One overload a table. write_dense stores the dense columns and returns the sparse values or-ed together;
// write_sparse stores the sparse ones, and returns the bytes that columns used for the first time now take.
// CP_TABLE closes the function before it and opens its own; begin and begin_sparse are there for the first to
// close.
struct Writers {
  static uint64_t begin(Table&, size_t) {
    uint64_t any = 0;
#define CP_TABLE(table, time, doc)                                                                  \
  return any;                                                                                       \
  }                                                                                                 \
  [[gnu::always_inline]] static uint64_t write_dense(Table& out, size_t at, const rows::table& r) { \
    uint64_t any = 0;                                                                               \
    size_t c = 0;                                                                                   \
    static_cast<void>(c);
#define CP_COLUMN(table, name, type, unit, doc) put<column_types::type>(out, c++, at, r.name);
#define CP_SPARSE(table, name, type, unit, doc) any |= static_cast<uint64_t>(r.name), ++c;
#include "store/schema.def"
#undef CP_TABLE
#undef CP_COLUMN
#undef CP_SPARSE
    return any;
  }

  static size_t begin_sparse(Table&, size_t) {
    size_t more = 0;
#define CP_TABLE(table, time, doc)                                          \
  return more;                                                              \
  }                                                                         \
  static size_t write_sparse(Table& out, size_t at, const rows::table& r) { \
    size_t more = 0, c = 0;                                                 \
    static_cast<void>(at), static_cast<void>(out), static_cast<void>(r), static_cast<void>(c);
#define CP_COLUMN(table, name, type, unit, doc) ++c;
#define CP_SPARSE(table, name, type, unit, doc)                   \
  if (r.name != 0 && !out.in_use(c)) more += out.use(c);          \
  if (out.in_use(c)) put<column_types::type>(out, c, at, r.name); \
  ++c;
#include "store/schema.def"
#undef CP_TABLE
#undef CP_COLUMN
#undef CP_SPARSE
    return more;
  }
};

}  // namespace detail

template <typename Row>
[[gnu::always_inline]] inline bool Store::append(const Row& row) {
  Table& t = table(Row::kId);
  if (used_bytes() + t.row_bytes() > x_budget && !make_room(t.row_bytes())) [[unlikely]] {
    count(x_keep == Keep::kSpill ? x_losses.spill_dropped : x_losses.budget_evicted);
    return false;
  }
  return write(t, row);
}

template <typename Row>
[[gnu::always_inline]] inline bool Store::write(Table& t, const Row& row) {
  size_t at;
  try {
    at = t.append_row();
  } catch (const std::bad_alloc&) {
    count(x_losses.budget_evicted);
    return false;
  }
  x_row_bytes_used += t.row_bytes();
  const uint64_t sparse = detail::Writers::write_dense(t, at, row);
  if (sparse != 0 || t.any_sparse_in_use()) x_row_bytes_used += detail::Writers::write_sparse(t, at, row);
  return true;
}

}  // namespace cuptiprof
