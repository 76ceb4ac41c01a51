// The table schema and the codes in its columns as Python data: what tables, writers and the docs are made
// from.
#include <cupti.h>

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
      columns.append(
          py::make_tuple(c.name, dtype_name(c.type), c.type == ColumnType::kStr, c.unit, c.doc, c.sparse));
    tables.append(py::make_tuple(
        spec.name,
        spec.time_column < 0 ? py::object(py::none()) : py::str(spec.columns[spec.time_column].name),
        spec.doc, columns));
  }
  return tables;
}

// List -> {code: text}.
py::dict codes() {
  py::dict range_kind, strategy, scope_source, operator_scope, memcpy_kind, memory_kind, sync_kind,
      overhead_kind;
  py::dict allocator_action, block_state;
  auto put = [](py::dict& list, auto code, const char* text) {
    list[py::int_(static_cast<int>(code))] = text;
  };
#define CP_RANGE_KIND(enumerator, code, text) put(range_kind, code, text);
#define CP_STRATEGY(enumerator, code, text) put(strategy, code, text);
#define CP_STRATEGY_ABOVE(code, text) put(strategy, code, text);
#define CP_SCOPE_SOURCE(enumerator, code, text) put(scope_source, code, text);
#define CP_OPERATOR_SCOPE(enumerator, code, text) put(operator_scope, code, text);
#define CP_ALLOCATOR_ACTION(code, text) put(allocator_action, code, text);
#define CP_BLOCK_STATE(code, text) put(block_state, code, text);
#define CP_MEMCPY_KIND(enumerator, text) put(memcpy_kind, CUPTI_ACTIVITY_MEMCPY_KIND_##enumerator, text);
#define CP_MEMORY_KIND(enumerator, text) put(memory_kind, CUPTI_ACTIVITY_MEMORY_KIND_##enumerator, text);
#define CP_SYNC_KIND(enumerator, text) put(sync_kind, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_##enumerator, text);
#define CP_OVERHEAD_KIND(enumerator, text) put(overhead_kind, CUPTI_ACTIVITY_OVERHEAD_##enumerator, text);
#include "base/codes.def"
  py::dict lists;
  lists["range_kind"] = range_kind;
  lists["strategy"] = strategy;
  lists["scope_source"] = scope_source;
  lists["operator_scope"] = operator_scope;
  lists["allocator_action"] = allocator_action;
  lists["block_state"] = block_state;
  lists["memcpy_kind"] = memcpy_kind;
  lists["memory_kind"] = memory_kind;
  lists["sync_kind"] = sync_kind;
  lists["overhead_kind"] = overhead_kind;
  return lists;
}

// [(name, CUpti_ActivityKind), ...]; a name may have several.
py::list activities() {
  py::list out;
#define CP_ACTIVITY(text, enumerator) \
  out.append(py::make_tuple(text, static_cast<int>(CUPTI_ACTIVITY_KIND_##enumerator)));
#include "base/codes.def"
  return out;
}

}  // namespace

void register_schema(py::module_& m) {
  m.def("schema", &schema,
        "[(table, time column or None, doc, [(column, NumPy dtype, is string index, unit, doc, is sparse), "
        "...]), ...]");
  m.attr("CODES") = codes();
  m.attr("ACTIVITIES") = activities();
}

}  // namespace cuptiprof
