// NumPy's columns for writers of traces: not copied, and kept as long as the writer.
#pragma once
#include <pybind11/numpy.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "trace/column_cells.h"

namespace cuptiprof {

// All with the GIL.
class LookedAt {
 public:
  CellColumn column(const pybind11::array& values) { return {kept(values), type_of(values)}; }

  const uint8_t* mask(const pybind11::array& values) {
    if (values.dtype().kind() != 'b') throw pybind11::type_error("what is shown is said by bool");
    return static_cast<const uint8_t*>(kept(values));
  }

  // Rows that every column has.
  size_t rows() const noexcept { return rows_; }

 private:
  const void* kept(const pybind11::array& values) {
    if (values.ndim() != 1) throw pybind11::value_error("a column has one dimension");
    const pybind11::array column = pybind11::array::ensure(values, pybind11::array::c_style);
    rows_ = std::min(rows_, static_cast<size_t>(column.size()));
    columns_.push_back(column);
    return column.data();
  }

  static CellType type_of(const pybind11::array& values) {
    const pybind11::dtype type = values.dtype();
    const char kind = type.kind();
    const auto size = type.itemsize();
    if (kind == 'f' && size == 8) return CellType::kF64;
    if (kind == 'i' && size == 8) return CellType::kI64;
    if (kind == 'i' && size == 4) return CellType::kI32;
    if (kind == 'u' && size == 8) return CellType::kU64;
    if (kind == 'u' && size == 4) return CellType::kU32;
    if (kind == 'u' && size == 2) return CellType::kU16;
    if (kind == 'u' && size == 1) return CellType::kU8;
    throw pybind11::type_error("no column of a trace: " + std::string(pybind11::str(type)));
  }

  std::vector<pybind11::array> columns_;
  size_t rows_ = std::numeric_limits<size_t>::max();
};

}  // namespace cuptiprof
