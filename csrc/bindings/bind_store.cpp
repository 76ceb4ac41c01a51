// The stores of a session for Python: tables as NumPy views.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include "bindings/bindings.h"
#include "bindings/text.h"
#include "store/store.h"

namespace py = pybind11;

namespace cuptiprof {
namespace {

py::dtype dtype_of(ColumnType t) {
  switch (t) {
    case ColumnType::kI64:
      return py::dtype::of<int64_t>();
    case ColumnType::kU64:
      return py::dtype::of<uint64_t>();
    case ColumnType::kI32:
      return py::dtype::of<int32_t>();
    case ColumnType::kU32:
    case ColumnType::kStr:
      return py::dtype::of<uint32_t>();
    case ColumnType::kU16:
      return py::dtype::of<uint16_t>();
    case ColumnType::kU8:
      return py::dtype::of<uint8_t>();
    case ColumnType::kF64:
      break;
  }
  return py::dtype::of<double>();
}

// {column: array}, each a read-only view of the store's own memory; the arrays keep the store alive.
py::dict columns_of(const std::shared_ptr<Store>& store, TableId id) {
  Table& table = store->table(id);
  py::object owner = py::cast(store);
  py::dict out;
  for (size_t c = 0; c < table.spec().columns.size(); ++c) {
    const ColumnSpec& spec = table.spec().columns[c];
    py::array array(dtype_of(spec.type), {table.rows()}, {width_of(spec.type)}, table.column(c),
                    table.rows() ? owner : py::object(py::none()));
    array.attr("flags").attr("writeable") = false;
    out[spec.name] = array;
  }
  return out;
}

py::dict tables_of(const std::shared_ptr<Store>& store) {
  py::dict out;
  for (size_t t = 0; t < kTableCount; ++t)
    out[table_spec(static_cast<TableId>(t)).name] = columns_of(store, static_cast<TableId>(t));
  return out;
}

py::list strings_of(Store& store) {
  py::list out(store.strings().size());
  for (uint32_t i = 0; i < store.strings().size(); ++i) out[i] = visible_text(store.strings().at(i));
  return out;
}

py::list kernel_names_of(Store& store) {
  py::list out;
  for (uint32_t i = 0; i < store.strings().size(); ++i)
    if (store.is_kernel_name(i)) out.append(visible_text(store.strings().at(i)));
  return out;
}

}  // namespace

void register_store(py::module_& m) {
  py::class_<Store, std::shared_ptr<Store>>(m, "Store",
                                            "The tables of one result, as the collector left them.")
      .def("tables", &tables_of, "{table: {column: read-only NumPy view}}")
      .def(
          "strings", [](Store& s) { return strings_of(s); }, "The string list that str columns index.")
      .def("kernel_names", &kernel_names_of, "Every kernel name that came, kept or not.")
      .def_property_readonly("used_bytes", &Store::used_bytes);
}

}  // namespace cuptiprof
