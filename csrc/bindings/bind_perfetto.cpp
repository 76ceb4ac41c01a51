// Columns in, packets of a Perfetto trace out.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/looked_at.h"
#include "trace/perfetto_slices.h"

namespace py = pybind11;

namespace cuptiprof {
namespace {

using Int64Array = py::array_t<int64_t, py::array::c_style>;
using NamedExtra = std::tuple<std::string, uint32_t, py::array, std::optional<py::array>>;

// With the arrays that they look at.
struct OwnedSlices {
  explicit OwnedSlices(std::vector<uint64_t> tracks) : slices(std::move(tracks)) {}
  PerfettoSlices slices;
  std::vector<LookedAt> columns;
  bool is_taken = false;
};

PerfettoSlices::Form extra_form_of(const std::string& name) {
  if (name == "number") return PerfettoSlices::Form::kSigned;
  if (name == "text") return PerfettoSlices::Form::kInterned;
  if (name == "flow") return PerfettoSlices::Form::kFlow;
  if (name == "last flow") return PerfettoSlices::Form::kLastFlow;
  throw py::value_error("no form of an argument: " + name);
}

void add_kind(OwnedSlices& self, uint32_t category, const Int64Array& start, const Int64Array& end,
              const py::array& track, const py::array& name, const std::vector<NamedExtra>& extras) {
  if (self.is_taken) throw py::value_error("slices are added before the first are taken");
  LookedAt columns;
  PerfettoSlices::Kind kind;
  kind.category = category;
  kind.start = static_cast<const int64_t*>(columns.column(start).values);
  kind.end = static_cast<const int64_t*>(columns.column(end).values);
  kind.track = columns.column(track);
  kind.name = columns.column(name);
  for (const auto& [form, number, values, shown] : extras) {
    PerfettoSlices::Extra extra;
    extra.form = extra_form_of(form);
    extra.name = number;
    extra.values = columns.column(values);
    if (shown) extra.shown = columns.mask(*shown);
    kind.extras.push_back(extra);
  }
  kind.rows = columns.rows();
  self.columns.push_back(std::move(columns));
  self.slices.add(std::move(kind));
}

py::bytes next_packets(OwnedSlices& self, size_t bytes) {
  self.is_taken = true;
  std::string out;
  {
    const py::gil_scoped_release nogil;
    out = self.slices.next(bytes);
  }
  return py::bytes(out);
}

}  // namespace

void register_perfetto(py::module_& m) {
  py::class_<OwnedSlices>(
      m, "PerfettoSlices",
      "Packets of the slices of a Perfetto trace, out of columns. `tracks`: the number of each in "
      "the file; at least one.")
      .def(py::init([](std::vector<uint64_t> tracks) {
             if (tracks.empty()) throw py::value_error("slices need a track");
             return std::make_unique<OwnedSlices>(std::move(tracks));
           }),
           py::arg("tracks"))
      .def("add", &add_kind, py::arg("category"), py::arg("start"), py::arg("end"), py::arg("track"),
           py::arg("name"), py::arg("extras"),
           "Slices of one category: times (int64 ns), index of the track, number of the name, and extras: "
           "(\"number\", "
           "\"text\" (a number of one), \"flow\" or \"last flow\"; number of the argument's name; column; "
           "bool where there "
           "is one).")
      .def("next", &next_packets, py::arg("bytes"),
           "The next packets, about so many bytes; empty: that was all.");
  m.def(
      "perfetto_counter",
      [](uint64_t track, const Int64Array& times, const py::array_t<double, py::array::c_style>& values) {
        if (times.ndim() != 1 || values.ndim() != 1 || times.size() != values.size())
          throw py::value_error("a counter has as many times as values");
        std::string out;
        append_perfetto_counter(out, track, times.data(), values.data(), static_cast<size_t>(times.size()));
        return py::bytes(out);
      },
      py::arg("track"), py::arg("times"), py::arg("values"),
      "Packets of the values of a counter, at times in ns.");
}

}  // namespace cuptiprof
