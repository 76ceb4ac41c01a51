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

// Names of columns that are words of C++ have a "_" behind them in schema.def.
constexpr const char* name_of(const char* identifier) {
  return std::string_view(identifier) == "operator_" ? "operator" : identifier;
}

// The rows of schema.def as constants: as statements they are one function of a thousand calls, which
// compilers take minutes over when they instrument it.
struct TableRow {
  const char *name, *time, *doc;
};
struct ColumnRow {
  TableId table;
  ColumnSpec column;
};

#define CP_COLUMN(...)
#define CP_SPARSE(...)
#define CP_TABLE(table, time, doc) {#table, #time, doc},
constexpr TableRow kTables[] = {
#include "store/schema.def"
};
#undef CP_TABLE
#undef CP_COLUMN
#undef CP_SPARSE

#define CP_TABLE(...)
#define CP_COLUMN(table, name, type, unit, doc) \
  {TableId::table, {name_of(#name), parse(#type), unit, doc, false}},
#define CP_SPARSE(table, name, type, unit, doc) \
  {TableId::table, {name_of(#name), parse(#type), unit, doc, true}},
constexpr ColumnRow kColumns[] = {
#include "store/schema.def"
};
#undef CP_TABLE
#undef CP_COLUMN
#undef CP_SPARSE

struct Built {
  std::array<std::vector<ColumnSpec>, kTableCount> columns;
  std::array<TableSpec, kTableCount> tables;
};

Built build() {
  Built b;
  for (const ColumnRow& row : kColumns) b.columns[static_cast<size_t>(row.table)].push_back(row.column);
  for (size_t t = 0; t < kTableCount; ++t) {
    b.tables[t] = {kTables[t].name, -1, kTables[t].doc, b.columns[t]};
    for (size_t c = 0; c < b.columns[t].size(); ++c)
      if (std::strcmp(b.columns[t][c].name, kTables[t].time) == 0)
        b.tables[t].time_column = static_cast<int>(c);
  }
  return b;
}

}  // namespace

const TableSpec& table_spec(TableId id) {
  static const Built built = build();
  return built.tables[static_cast<size_t>(id)];
}

}  // namespace cuptiprof
