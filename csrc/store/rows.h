// One plain struct per table, made from schema.def: what the decoder fills in and Store::append writes out by
// column.
#pragma once
#include <cstdint>

#include "store/schema.h"

namespace cuptiprof {

namespace column_types {
using i64 = int64_t;
using u64 = uint64_t;
using i32 = int32_t;
using u32 = uint32_t;
using u16 = uint16_t;
using u8 = uint8_t;
using f64 = double;
using str = uint32_t;
}  // namespace column_types

// CP_TABLE closes the struct before it and opens its own, so that CP_COLUMN can add members; `Begin` is there
// for the first one to close.
namespace rows {
struct Begin {
#define CP_TABLE(table, time, doc) \
  }                                \
  ;                                \
  struct table {                   \
    static constexpr TableId kId = TableId::table;
#define CP_COLUMN(table, name, type, unit, doc) column_types::type name{};
#include "store/schema.def"
#undef CP_TABLE
#undef CP_COLUMN
};
}  // namespace rows

}  // namespace cuptiprof
