// A kernel filter over the columns of a finished table.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include "base/error.h"
#include "bindings/bindings.h"
#include "bindings/text.h"
#include "filter/select_rows.h"

namespace py = pybind11;

namespace cuptiprof {
namespace {

constexpr py::ssize_t kConfigColumns = 7;  // grid x y z, block x y z, shared memory

using Column = std::optional<py::array_t<uint32_t, py::array::c_style | py::array::forcecast>>;

std::span<const uint32_t> view(const Column& column, size_t rows, const char* what) {
  if (!column) return {};
  if (column->ndim() != 1 || static_cast<size_t>(column->size()) != rows)
    throw Error(ErrorKind::kGeneric,
                std::string("column ") + what + " must be one-dimensional with one entry a row",
                "Pass the columns of one table.");
  return {column->data(), rows};
}

// The strings behind the codes that occur; the others stay empty.
void add_used_strings(std::vector<std::string>& out, const py::sequence& list,
                      std::span<const uint32_t> codes, const char* what) {
  out.resize(list.size());
  std::vector<bool> seen(out.size());
  for (const uint32_t code : codes) {
    if (code >= out.size())
      throw Error(ErrorKind::kGeneric,
                  std::string(what) + " code " + std::to_string(code) + " is beyond its string list");
    if (seen[code]) continue;
    seen[code] = true;
    out[code] = utf8(list[code]);
  }
}

py::tuple select_table(
    const KernelFilter& filter, size_t rows, const py::sequence& names, const Column& name_codes,
    const Column& device, const Column& context, const Column& stream, const Column& thread,
    const Column& step,
    const std::optional<py::array_t<int64_t, py::array::c_style | py::array::forcecast>>& configs,
    const Column& config, const py::sequence& ranges, const Column& region_codes, const Column& nvtx_codes,
    const Column& start_end_codes, const Column& operator_codes, const Column& order,
    const std::optional<py::array_t<uint8_t, py::array::c_style | py::array::forcecast>>& in_lines) {
  LaunchColumns columns;
  columns.rows = rows;
  columns.name = view(name_codes, rows, "name");
  columns.device = view(device, rows, "device");
  columns.context = view(context, rows, "context");
  columns.stream = view(stream, rows, "stream");
  columns.thread = view(thread, rows, "thread");
  columns.step = view(step, rows, "step");
  columns.config = view(config, rows, "config");
  columns.region = view(region_codes, rows, "region");
  columns.nvtx = view(nvtx_codes, rows, "nvtx");
  columns.start_end = view(start_end_codes, rows, "nvtx_start_end");
  columns.operators = view(operator_codes, rows, "operator");
  columns.order = view(order, rows, "order");
  if (in_lines) {
    if (in_lines->ndim() != 1 || static_cast<size_t>(in_lines->size()) != rows)
      throw Error(ErrorKind::kGeneric, "in_lines must have one entry a row",
                  "Pass the columns of one table.");
    columns.in_lines = {in_lines->data(), rows};
  }
  std::vector<std::string> name_strings, range_strings;
  add_used_strings(name_strings, names, columns.name, "name");
  add_used_strings(range_strings, ranges, columns.region, "region");
  add_used_strings(range_strings, ranges, columns.nvtx, "nvtx");
  add_used_strings(range_strings, ranges, columns.start_end, "nvtx_start_end");
  add_used_strings(range_strings, ranges, columns.operators, "operator");
  columns.names = name_strings;
  columns.ranges = range_strings;
  std::vector<LaunchView> views;
  if (configs) {
    if (configs->ndim() != 2 || configs->shape(1) != kConfigColumns)
      throw Error(ErrorKind::kGeneric, "configs must have 7 columns: grid x y z, block x y z, shared memory");
    const auto c = configs->unchecked<2>();
    for (py::ssize_t i = 0; i < c.shape(0); ++i) {
      LaunchView& v = views.emplace_back();
      for (py::ssize_t k = 0; k < 3; ++k) {
        v.grid[static_cast<size_t>(k)] = static_cast<int32_t>(c(i, k));
        v.block[static_cast<size_t>(k)] = static_cast<int32_t>(c(i, k + 3));
      }
      v.shared_memory = c(i, 6);
    }
  }
  for (const uint32_t code : columns.config)
    if (code >= views.size())
      throw Error(ErrorKind::kGeneric, "config code " + std::to_string(code) + " is beyond configs");
  columns.configs = views;

  py::array_t<bool> mask(static_cast<py::ssize_t>(rows));
  static_assert(sizeof(bool) == 1);
  auto* out = reinterpret_cast<uint8_t*>(mask.mutable_data());
  uint64_t overflowed = 0;
  {
    py::gil_scoped_release release;
    overflowed = select_rows(filter, columns, {out, rows});
  }
  return py::make_tuple(mask, overflowed);
}

}  // namespace

void register_filter_columns(py::module_& m) {
  m.def("select_rows", &select_table, py::arg("filter"), py::arg("rows"), py::kw_only(),
        py::arg("names") = py::list(), py::arg("name_codes") = py::none(), py::arg("device") = py::none(),
        py::arg("context") = py::none(), py::arg("stream") = py::none(), py::arg("thread") = py::none(),
        py::arg("step") = py::none(), py::arg("configs") = py::none(), py::arg("config") = py::none(),
        py::arg("ranges") = py::list(), py::arg("region_codes") = py::none(),
        py::arg("nvtx_codes") = py::none(), py::arg("start_end_codes") = py::none(),
        py::arg("operator_codes") = py::none(), py::arg("order") = py::none(),
        py::arg("in_lines") = py::none(),
        "(bool mask, launches refused because the counters were full) over the columns of a kernels table.");
}

}  // namespace cuptiprof
