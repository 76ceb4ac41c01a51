// Kernel filters for cuptiprof/filter/kernel_filter.py.
#include <pybind11/stl.h>

#include "base/demangle/demangle.h"
#include "bindings/bindings.h"
#include "bindings/text.h"
#include "filter/filter_state.h"
#include "filter/kernel_filter.h"
#include "filter/nearest_names.h"

namespace py = pybind11;

namespace cuptiprof {
namespace {

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
  spec.operators = texts("operators");
  spec.lines = texts("lines");
  spec.modules = texts("modules");
  spec.devices = ids("devices");
  spec.contexts = ids("contexts");
  spec.streams = ids("streams");
  spec.threads = ids("threads");
  spec.steps = ids("steps");
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

// [(file, function, line), ...] of a stack.
bool matches_lines(const KernelFilter& filter, const py::iterable& stack) {
  if (!filter.needs_lines()) return true;
  for (const py::handle item : stack) {
    const auto frame = py::cast<py::sequence>(item);
    const std::string file = utf8(frame[0]), function = utf8(frame[1]);
    const LineView at{file, function, frame[2].cast<uint32_t>()};
    if (filter.matches_lines({&at, 1})) return true;
  }
  return false;
}

// cuptiprof.filter.launch.Launch objects, in launch order -> indices of those selected.
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
    launch.step = given("step").is_none() ? 0 : given("step").cast<uint32_t>() + 1;
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
    const std::string operator_path = utf8(given("operator"));
    const std::vector<std::string> operators = split_region_path(operator_path);
    const std::vector<std::string_view> operator_views(operators.begin(), operators.end());
    const RangeView ranges{path,          region_views,  region_views, push_pop.views(), start_end.views(),
                           operator_path, operator_views};
    const bool open = filter.matches_ranges(ranges) && matches_lines(filter, given("stack")) &&
                      filter.matches_module(without_ordinal(utf8(given("module"))));
    if (state.select(filter, launch, filter.name_verdict(parts), open)) out.push_back(index);
    ++index;
  }
  return out;
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
      [](const py::str& wanted, const py::iterable& names, size_t limit) {
        py::list out;
        for (const auto& name : nearest_names(utf8(wanted), strings(names), limit)) out.append(text(name));
        return out;
      },
      py::arg("wanted"), py::arg("names"), py::arg("limit") = 5,
      "The function names nearest to the wanted text, at most `limit`.");
  m.def(
      "split_region_path",
      [](const py::str& path) {
        py::list out;
        for (const auto& name : split_region_path(utf8(path))) out.append(text(name));
        return out;
      },
      py::arg("path"), "Names of the open regions, outermost first.");

  py::class_<KernelFilter, std::shared_ptr<KernelFilter>>(
      m, "KernelFilter", "Compiled filter; see cuptiprof.filter.kernel_filter.")
      .def(py::init(&make_filter), py::arg("fields"))
      .def("select", &select, py::arg("launches"),
           "Indices of the launches selected, which are in launch order.")
      .def(
          "matches_name",
          [](const KernelFilter& f, const py::str& name) { return f.matches_name(NameParts(utf8(name))); },
          py::arg("name"))
      .def("matches_lines", &matches_lines, py::arg("stack"),
           "Whether work launched from this stack, [(file, function, line), ...], can be selected.")
      .def(
          "matches_module",
          [](const KernelFilter& f, const py::str& path) {
            return f.matches_module(without_ordinal(utf8(path)));
          },
          py::arg("path"), "Whether work launched in this module can be selected.")
      .def("describe", [](const KernelFilter& f) { return text(f.describe()); })
      .def("name_patterns",
           [](const KernelFilter& f) {
             py::list out;
             for (const auto& pattern : f.name_patterns()) out.append(text(pattern));
             return out;
           })
      .def_property_readonly("is_stateful", &KernelFilter::is_stateful)
      .def_property_readonly("needs_regions", &KernelFilter::needs_regions)
      .def_property_readonly("needs_operators", &KernelFilter::needs_operators)
      .def_property_readonly("needs_lines", &KernelFilter::needs_lines)
      .def_property_readonly("needs_modules", &KernelFilter::needs_modules)
      .def_property_readonly("selects_all", &KernelFilter::selects_all);
}

}  // namespace cuptiprof
