// Cells of a store's tables, for tests.
#pragma once
#include <cstddef>
#include <cstring>
#include <string_view>

#include "doctest/doctest.h"
#include "store/store.h"

namespace cuptiprof {

// 0 where a sparse column is not in use.
template <typename T>
T cell_of(const Table& table, std::string_view column, size_t row) {
  for (size_t c = 0; c < table.spec().columns.size(); ++c)
    if (column == table.spec().columns[c].name) {
      T value{};
      if (table.in_use(c)) std::memcpy(&value, table.column(c) + row * sizeof(T), sizeof value);
      return value;
    }
  FAIL("no such column");
  return {};
}

}  // namespace cuptiprof
