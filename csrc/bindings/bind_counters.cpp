// Collecting counters, for Python: what to collect, and the rows that came.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include "bindings/bindings.h"
#include "bindings/text.h"
#include "collect/activity.h"
#include "counters/preflight.h"
#include "counters/strategy/counter_strategy.h"
#include "counters/strategy/launch_selector.h"
#include "counters/strategy/planned_chip.h"
#include "counters/strategy/profiler_setup.h"
#include "filter/kernel_filter.h"
#include "filter/name_parts.h"
#include "session/session.h"

namespace py = pybind11;

namespace cuptiprof {
namespace {

Strategy strategy_of(const std::string& name) {
#define CP_STRATEGY(enumerator, code, text) \
  if (name == text) return Strategy::enumerator;
#include "base/codes.def"
  throw py::value_error("no strategy " + name);
}

CounterOptions make_options(const std::string& strategy, std::string chip, std::vector<PassGroup> groups,
                            std::shared_ptr<KernelFilter> filter, bool communicating, size_t row_bytes,
                            int levels, uint64_t interval, bool interval_in_cycles, bool keep_latest,
                            uint64_t hardware_buffer, std::vector<uint32_t> devices, bool resets_caches,
                            int clocks, bool clocks_are_wanted) {
  if (groups.empty()) throw py::value_error("no pass group");
  CounterOptions o;
  o.strategy = strategy_of(strategy);
  o.chip = std::move(chip);
  o.groups = std::move(groups);
  o.selector.filter = std::move(filter);
  o.selector.communicating = communicating;
  o.row_bytes = row_bytes;
  o.levels = static_cast<uint16_t>(levels);
  o.interval = interval;
  o.interval_in_cycles = interval_in_cycles;
  o.keep_latest = keep_latest;
  o.hardware_buffer = hardware_buffer;
  o.devices = std::move(devices);
  o.resets_caches = resets_caches;
  o.clocks = clocks;
  o.clocks_are_wanted = clocks_are_wanted;
  return o;
}

std::vector<CUcontext> contexts() { return Activity::instance().contexts(); }

template <class T, class Get>
py::array_t<T> column(const std::vector<CounterRow>& rows, Get get) {
  py::array_t<T> out(static_cast<py::ssize_t>(rows.size()));
  T* at = out.mutable_data();
  for (size_t i = 0; i < rows.size(); ++i) at[i] = static_cast<T>(get(rows[i]));
  return out;
}

template <class T>
py::array_t<T> array_of(const std::vector<T>& values) {
  return py::array_t<T>(static_cast<py::ssize_t>(values.size()), values.data());
}

py::object take_rows(Session& session) {
  const CounterRows::Taken* taken = nullptr;
  {
    py::gil_scoped_release nogil;
    taken = session.take_counters();
  }
  if (!taken) return py::none();
  const auto& rows = taken->rows;
  py::dict d;
#define CP_FIELD(field, type) d[#field] = column<type>(rows, [](const CounterRow& r) { return r.field; })
  CP_FIELD(start, int64_t);
  CP_FIELD(end, int64_t);
  CP_FIELD(name, uint32_t);
  CP_FIELD(region, uint32_t);
  CP_FIELD(correlation, uint32_t);
  CP_FIELD(thread, uint32_t);
  CP_FIELD(device, uint32_t);
  CP_FIELD(context, uint32_t);
  CP_FIELD(stream, uint32_t);
  CP_FIELD(sequence, uint32_t);
  CP_FIELD(group, uint16_t);
  CP_FIELD(passes, uint16_t);
  CP_FIELD(kind, uint8_t);
#undef CP_FIELD
  constexpr const char* kAxes[] = {"x", "y", "z"};
  for (size_t axis = 0; axis < 3; ++axis) {
    d[py::str(std::string("grid_") + kAxes[axis])] =
        column<int32_t>(rows, [axis](const CounterRow& r) { return r.grid[axis]; });
    d[py::str(std::string("block_") + kAxes[axis])] =
        column<int32_t>(rows, [axis](const CounterRow& r) { return r.block[axis]; });
  }
  d["values"] = array_of(taken->values);
  d["offsets"] = array_of(taken->offsets);
  return d;
}

py::dict counts_of(const Session& session) {
  py::dict d;
  CounterStrategy* strategy = session.counters();
  if (!strategy) return d;
  const CounterEvents& e = strategy->events();
#define CP_EVENT(name, doc) d[#name] = e.name.load();
  CP_COUNTER_EVENTS(CP_EVENT)
#undef CP_EVENT
  d["error"] = e.error.load();
  const char* call = e.error_call.load();
  d["error_call"] = call ? call : "";
  d["names_judged"] = strategy->selector().names_judged();
  d["communicating"] = strategy->selector().communicating_left_out();
  const ClockLock& clocks = strategy->clocks();
  d["clocks_held"] = clocks.state() == ClockLock::State::kHeld;
  d["clocks_of_others"] = clocks.state() == ClockLock::State::kTheirs;
  d["clocks_error"] = static_cast<int>(clocks.result());
  d["selected"] = strategy->selector().selected();
  return d;
}

}  // namespace

void define_counters(py::class_<Session>& session) {
  const auto nogil = py::call_guard<py::gil_scoped_release>();
  session
      .def("step", &Session::step, py::arg("number"), nogil,
           "A training step ended, and the one of this number begins; with counters the next pass group is "
           "on.")
      .def("next_pass", &Session::next_pass, nogil,
           "The repeated work was run once: True while it must run again. Raises SessionError.")
      .def("abandon_passes", &Session::abandon_passes, nogil,
           "The repeated work raised: what was measured of it is forgotten, and counted.")
      .def("take_counters", &take_rows,
           "{column: array} of what was measured since forget_taken(), with `values`, and where each row's "
           "begin in `offsets`; None without counters")
      .def("counter_counts", &counts_of, "What was selected, and what of it was not measured, by reason.")
      .def(
          "counter_text",
          [](const Session& s, uint32_t id) {
            return s.counters() ? visible_text(s.counters()->selector().text(id)) : py::str("");
          },
          py::arg("id"), "Text of a name or region ID of the rows.");
}

void register_counters(py::module_& m) {
  py::class_<CounterOptions>(m, "CounterOptions", "What a session counts and how.")
      // clocks: CUpti_ClockControl_Mode, 0: left alone; the rest as in CounterOptions.
      .def(py::init(&make_options), py::kw_only(), py::arg("strategy"), py::arg("chip"), py::arg("groups"),
           py::arg("filter") = nullptr, py::arg("communicating") = false, py::arg("row_bytes") = 0,
           py::arg("levels") = 1, py::arg("interval") = 100'000, py::arg("interval_in_cycles") = false,
           py::arg("keep_latest") = true, py::arg("hardware_buffer") = 64u << 20,
           py::arg("devices") = std::vector<uint32_t>{}, py::arg("resets_caches") = false,
           py::arg("clocks") = 0, py::arg("clocks_are_wanted") = false);
  m.def(
      "chip_name",
      [](std::shared_ptr<Api> api, size_t device) {
        py::gil_scoped_release nogil;
        if (api->cuInit) api->cuInit(0);
        initialize_profiler(*api);
        return chip_name(*api, device);
      },
      py::arg("library"), py::arg("device") = 0,
      "CUPTI's name of a device's chip, \"GH100\". Raises CuptiError.");
  m.def(
      "device_in_use",
      [](std::shared_ptr<Api> api) {
        py::gil_scoped_release nogil;
        return device_in_use(*api, known_contexts(*api, &contexts));
      },
      py::arg("library"),
      "The device of the calling thread's context, or of the first in which work was launched; else 0.");
  m.def(
      "counter_availability",
      [](std::shared_ptr<Api> api, bool sampling) {
        DeviceCounters counters;
        {
          py::gil_scoped_release nogil;
          counters = device_counters(*api, known_contexts(*api, &contexts), sampling);
        }
        const auto* bytes = reinterpret_cast<const char*>(counters.image.data());
        return py::make_tuple(py::bytes(bytes, counters.image.size()), counters.has_links);
      },
      py::arg("library"), py::arg("sampling") = false,
      "(image, whether PCIe and NVLink are in it) of the device in use; an empty image: it is not to be "
      "had.");
  m.def(
      "communicates", [](const py::str& kernel) { return communicates(NameParts(utf8(kernel)).function); },
      py::arg("kernel"), "Whether a kernel waits for kernels on other GPUs, by its name, mangled or not.");
  py::list events;
#define CP_EVENT(name, doc) events.append(py::make_tuple(#name, doc));
  CP_COUNTER_EVENTS(CP_EVENT)
#undef CP_EVENT
  m.attr("COUNTER_EVENTS") = events;
}

}  // namespace cuptiprof
