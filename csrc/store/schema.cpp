#include "store/schema.h"

#include <array>
#include <cstring>
#include <string_view>
#include <vector>

namespace cuptiprof {
namespace {

constexpr ColumnType parse(std::string_view t) {
  if (t == "i64") return ColumnType::kI64;
  if (t == "u64") return ColumnType::kU64;
  if (t == "i32") return ColumnType::kI32;
  if (t == "u32") return ColumnType::kU32;
  if (t == "u16") return ColumnType::kU16;
  if (t == "u8") return ColumnType::kU8;
  if (t == "f64") return ColumnType::kF64;
  return ColumnType::kStr;
}

struct Built {
  std::array<std::vector<ColumnSpec>, kTableCount> columns;
  std::array<TableSpec, kTableCount> tables;
};

Built build() {
  Built b;
  std::array<const char*, kTableCount> time{};
  auto at = [](TableId id) { return static_cast<size_t>(id); };
#define CP_TABLE(table, time_name, text)                 \
  b.tables[at(TableId::table)] = {#table, -1, text, {}}; \
  time[at(TableId::table)] = #time_name;
#define CP_COLUMN(table, name, type, unit, text) \
  b.columns[at(TableId::table)].push_back({#name, parse(#type), unit, text, false});
#define CP_SPARSE(table, name, type, unit, text) \
  b.columns[at(TableId::table)].push_back({#name, parse(#type), unit, text, true});
#include "store/schema.def"
#undef CP_TABLE
#undef CP_COLUMN
#undef CP_SPARSE
  for (size_t t = 0; t < kTableCount; ++t) {
    b.tables[t].columns = b.columns[t];
    for (size_t c = 0; c < b.columns[t].size(); ++c)
      if (std::strcmp(b.columns[t][c].name, time[t]) == 0) b.tables[t].time_column = static_cast<int>(c);
  }
  return b;
}

}  // namespace

const TableSpec& table_spec(TableId id) {
  static const Built built = build();
  return built.tables[static_cast<size_t>(id)];
}

}  // namespace cuptiprof
