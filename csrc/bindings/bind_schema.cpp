// The table schema as Python data: what result.py, the Parquet writer and the docs are made from.
#include "store/schema.h"

#include "bindings/bindings.h"

namespace py = pybind11;

namespace cuptiprof {
namespace {

const char* dtype_name(ColumnType t) {
  switch (t) {
    case ColumnType::kI64:
      return "int64";
    case ColumnType::kU64:
      return "uint64";
    case ColumnType::kI32:
      return "int32";
    case ColumnType::kU32:
    case ColumnType::kStr:
      return "uint32";
    case ColumnType::kU16:
      return "uint16";
    case ColumnType::kU8:
      return "uint8";
    case ColumnType::kF64:
      return "float64";
  }
  return "";
}

py::list schema() {
  py::list tables;
  for (size_t t = 0; t < kTableCount; ++t) {
    const TableSpec& spec = table_spec(static_cast<TableId>(t));
    py::list columns;
    for (const auto& c : spec.columns)
      columns.append(py::make_tuple(c.name, dtype_name(c.type), c.type == ColumnType::kStr, c.unit, c.doc));
    tables.append(py::make_tuple(
        spec.name,
        spec.time_column < 0 ? py::object(py::none()) : py::str(spec.columns[spec.time_column].name),
        spec.doc, columns));
  }
  return tables;
}

}  // namespace

void register_schema(py::module_& m) {
  m.def("schema", &schema,
        "[(table, time column or None, doc, [(column, NumPy dtype, is string index, unit, doc), ...]), ...]");
}

}  // namespace cuptiprof
