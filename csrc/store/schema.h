// Tables and columns as data, made from schema.def. Constant: any thread may look.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace cuptiprof {

enum class ColumnType : uint8_t { kI64, kU64, kI32, kU32, kU16, kU8, kF64, kStr };

constexpr size_t width_of(ColumnType t) {
  switch (t) {
    case ColumnType::kI64:
    case ColumnType::kU64:
    case ColumnType::kF64:
      return 8;
    case ColumnType::kI32:
    case ColumnType::kU32:
    case ColumnType::kStr:
      return 4;
    case ColumnType::kU16:
      return 2;
    case ColumnType::kU8:
      return 1;
  }
  return 0;
}

struct ColumnSpec {
  const char* name;
  ColumnType type;
  const char* unit;
  const char* doc;
  bool sparse;  // 0 in most runs: no memory until its first other value
};

struct TableSpec {
  const char* name;
  int time_column;  // index into columns of the column that orders the table in time; -1: none
  const char* doc;
  std::span<const ColumnSpec> columns;
  // With every column in use.
  size_t row_bytes() const {
    size_t n = 0;
    for (const auto& c : columns) n += width_of(c.type);
    return n;
  }
  size_t dense_row_bytes() const {
    size_t n = 0;
    for (const auto& c : columns) n += c.sparse ? 0 : width_of(c.type);
    return n;
  }
};

enum class TableId : uint8_t {
#define CP_TABLE(table, time, doc) table,
#define CP_COLUMN(table, name, type, unit, doc)
#include "store/schema.def"
#undef CP_TABLE
#undef CP_COLUMN
  count
};

constexpr size_t kTableCount = static_cast<size_t>(TableId::count);

const TableSpec& table_spec(TableId id);

}  // namespace cuptiprof
