// Kernel filters for cuptiprof/filters.py.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include "base/demangle.h"
#include "base/error.h"
#include "bindings/bindings.h"
#include "filter/filter_state.h"
#include "filter/kernel_filter.h"
#include "filter/nearest_names.h"
#include "filter/select_rows.h"

namespace py = pybind11;

namespace cuptiprof {
namespace {

// Lone surrogates pass: names that Python decoded with surrogateescape are text like any other here.
std::string utf8(const py::handle& text) {
  if (!PyUnicode_Check(text.ptr()))
    throw py::type_error("expected str, got " + std::string(py::str(py::type::of(text))));
  const py::object bytes =
      py::reinterpret_steal<py::object>(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogatepass"));
  if (!bytes) throw py::error_already_set();
  return {PyBytes_AS_STRING(bytes.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

// Whatever C++ cut or kept, as text that can come back in.
py::str text(std::string_view s) {
  PyObject* out = PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "surrogatepass");
  if (!out) {
    PyErr_Clear();
    out = PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "replace");
  }
  if (!out) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(out);
}

std::vector<std::string> strings(const py::handle& list) {
  std::vector<std::string> out;
  for (const py::handle item : list) out.push_back(utf8(item));
  return out;
}

KernelFilter make_filter(const py::dict& fields) {
  FilterSpec spec;
  const auto texts = [&](const char* key) { return strings(fields[key]); };
  const auto ids = [&](const char* key) { return fields[key].cast<std::vector<uint32_t>>(); };
  spec.base = parse_name_base(utf8(fields["base"]));
  spec.kernels = texts("kernels");
  spec.exclude = texts("exclude");
  spec.kernel_names = texts("kernel_names");
  spec.nvprof_kernels = texts("nvprof_kernels");
  spec.kernel_ids = texts("kernel_ids");
  spec.regions = texts("regions");
  spec.exclude_regions = texts("exclude_regions");
  spec.nvtx_include = texts("nvtx_include");
  spec.nvtx_exclude = texts("nvtx_exclude");
  spec.devices = ids("devices");
  spec.contexts = ids("contexts");
  spec.streams = ids("streams");
  spec.threads = ids("threads");
  spec.grid = fields["grid"].cast<std::optional<Dim3>>();
  spec.block = fields["block"].cast<std::optional<Dim3>>();
  spec.skip = fields["skip"].cast<int64_t>();
  spec.count = fields["count"].cast<std::optional<int64_t>>();
  spec.every = fields["every"].cast<int64_t>();
  spec.skip_before_match = fields["skip_before_match"].cast<int64_t>();
  spec.mode = parse_filter_mode(utf8(fields["mode"]));
  return KernelFilter(std::move(spec));
}

// {domain: [name, ...]} as views into strings that it owns.
class Ranges {
 public:
  explicit Ranges(const py::dict& dict) {
    for (const auto& [domain, names] : dict) x_domains.push_back({utf8(domain), strings(names), {}});
    for (Domain& d : x_domains) {
      d.views.assign(d.names.begin(), d.names.end());
      x_views.push_back({d.domain, d.views});
    }
  }
  std::span<const DomainRanges> views() const { return x_views; }

 private:
  struct Domain {
    std::string domain;
    std::vector<std::string> names;
    std::vector<std::string_view> views;
  };
  std::vector<Domain> x_domains;
  std::vector<DomainRanges> x_views;
};

// Launch objects of filters.py, in launch order -> indices.
std::vector<size_t> select(const KernelFilter& filter, const py::iterable& launches) {
  FilterState state(filter);
  std::vector<size_t> out;
  size_t index = 0;
  for (const py::handle item : launches) {
    const auto given = [&](const char* key) -> py::object { return item.attr(key); };
    NameParts parts;
    const py::object name = given("name"), demangled = given("demangled"), mangled = given("mangled");
    const std::string raw = !mangled.is_none() ? utf8(mangled) : !name.is_none() ? utf8(name) : "";
    if (demangled.is_none()) {
      parts = NameParts(raw);
    } else {
      parts = NameParts(utf8(demangled));
      if (!raw.empty()) parts.mangled = raw;
    }
    // A name beside its long form is the function name, unless it is a long form itself.
    if (!name.is_none() && !(demangled.is_none() && mangled.is_none()))
      parts.function = NameParts(utf8(name)).function;

    LaunchView launch;
    launch.device = given("device").cast<uint32_t>();
    launch.context = given("context").cast<uint32_t>();
    launch.stream = given("stream").cast<uint32_t>();
    launch.thread = given("thread").cast<uint32_t>();
    launch.grid = given("grid").cast<Dim3>();
    launch.block = given("block").cast<Dim3>();
    launch.shared_memory = given("shared_memory").cast<int64_t>();
    const std::string context_name = utf8(given("context_name")), stream_name = utf8(given("stream_name"));
    launch.context_name = context_name;
    launch.stream_name = stream_name;

    const std::string path = utf8(given("region"));
    const std::vector<std::string> regions = split_region_path(path);
    const std::vector<std::string_view> region_views(regions.begin(), regions.end());
    const Ranges push_pop(given("push_pop")), start_end(given("start_end"));
    const RangeView ranges{path, region_views, push_pop.views(), start_end.views()};
    if (state.select(filter, launch, filter.name_verdict(parts), filter.matches_ranges(ranges)))
      out.push_back(index);
    ++index;
  }
  return out;
}

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
std::vector<std::string> used_strings(const py::sequence& list, std::span<const uint32_t> codes,
                                      const char* what) {
  std::vector<std::string> out(list.size());
  std::vector<bool> seen(out.size());
  for (const uint32_t code : codes) {
    if (code >= out.size())
      throw Error(ErrorKind::kGeneric,
                  std::string(what) + " code " + std::to_string(code) + " is beyond its string list");
    if (seen[code]) continue;
    seen[code] = true;
    out[code] = utf8(list[code]);
  }
  return out;
}

py::tuple select_table(
    const KernelFilter& filter, size_t rows, const py::sequence& names, const Column& name_codes,
    const Column& device, const Column& context, const Column& stream, const Column& thread,
    const std::optional<py::array_t<int64_t, py::array::c_style | py::array::forcecast>>& configs,
    const Column& config, const std::optional<py::sequence>& regions, const Column& region_codes,
    const Column& order) {
  LaunchColumns columns;
  columns.rows = rows;
  columns.name = view(name_codes, rows, "name");
  columns.device = view(device, rows, "device");
  columns.context = view(context, rows, "context");
  columns.stream = view(stream, rows, "stream");
  columns.thread = view(thread, rows, "thread");
  columns.config = view(config, rows, "config");
  columns.region = view(region_codes, rows, "region");
  columns.order = view(order, rows, "order");
  const std::vector<std::string> name_strings = used_strings(names, columns.name, "name");
  const std::vector<std::string> region_strings =
      used_strings(regions ? *regions : py::sequence(py::list()), columns.region, "region");
  columns.names = name_strings;
  columns.regions = region_strings;
  std::vector<LaunchView> views;
  if (configs) {
    if (configs->ndim() != 2 || configs->shape(1) != 7)
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

void register_filter(py::module_& m) {
  m.def(
      "demangle", [](const py::str& name) { return text(demangle(utf8(name))); }, py::arg("name"),
      "Demangled form of an Itanium-ABI name; other text comes back unchanged.");
  m.def(
      "function_base", [](const py::str& name) { return text(function_base(utf8(name))); },
      py::arg("demangled"),
      "Function name without return type, namespaces, template arguments and parameters.");
  m.def(
      "qualified_name", [](const py::str& name) { return text(qualified_name(utf8(name))); },
      py::arg("demangled"),
      "Function name with its namespaces, without return type, template arguments and parameters.");
  m.def(
      "nearest_names",
      [](const py::str& wanted, const py::iterable& names, size_t k) {
        py::list out;
        for (const auto& name : nearest_names(utf8(wanted), strings(names), k)) out.append(text(name));
        return out;
      },
      py::arg("wanted"), py::arg("names"), py::arg("k") = 5,
      "The k function names nearest to the wanted text.");
  m.def(
      "split_region_path",
      [](const py::str& path) {
        py::list out;
        for (const auto& name : split_region_path(utf8(path))) out.append(text(name));
        return out;
      },
      py::arg("path"), "Names of the open regions, outermost first.");

  py::class_<KernelFilter, std::shared_ptr<KernelFilter>>(m, "KernelFilter",
                                                          "Compiled filter; see cuptiprof.filters.")
      .def(py::init(&make_filter), py::arg("fields"))
      .def("select", &select, py::arg("launches"))
      .def(
          "matches_name",
          [](const KernelFilter& f, const py::str& name) { return f.matches_name(NameParts(utf8(name))); },
          py::arg("name"))
      .def("describe", [](const KernelFilter& f) { return text(f.describe()); })
      .def("name_patterns",
           [](const KernelFilter& f) {
             py::list out;
             for (const auto& pattern : f.name_patterns()) out.append(text(pattern));
             return out;
           })
      .def_property_readonly("is_stateful", &KernelFilter::is_stateful)
      .def_property_readonly("needs_regions", &KernelFilter::needs_regions)
      .def_property_readonly("selects_all", &KernelFilter::selects_all);
  m.def("select_rows", &select_table, py::arg("filter"), py::arg("rows"), py::kw_only(),
        py::arg("names") = py::list(), py::arg("name_codes") = py::none(), py::arg("device") = py::none(),
        py::arg("context") = py::none(), py::arg("stream") = py::none(), py::arg("thread") = py::none(),
        py::arg("configs") = py::none(), py::arg("config") = py::none(), py::arg("regions") = py::none(),
        py::arg("region_codes") = py::none(), py::arg("order") = py::none(),
        "(bool mask, launches refused because the counters were full) over the columns of a kernels table.");
}

}  // namespace cuptiprof
