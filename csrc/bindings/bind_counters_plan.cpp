// Planning of metrics for Python: what a chip has, what a set of metrics costs, values out of an image.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <mutex>

#include "base/error.h"
#include "bindings/bindings.h"
#include "bindings/text.h"
#include "counters/plan/nvperf.h"
#include "counters/plan/planner.h"

namespace py = pybind11;

namespace cuptiprof {
namespace {

constexpr struct {
  const char* name;
  CUpti_MetricType type;
} kKinds[] = {{"counter", CUPTI_METRIC_TYPE_COUNTER},
              {"ratio", CUPTI_METRIC_TYPE_RATIO},
              {"throughput", CUPTI_METRIC_TYPE_THROUGHPUT}};

CUpti_MetricType metric_type(const std::string& name) {
  for (const auto& k : kKinds)
    if (name == k.name) return k.type;
  throw py::value_error("kind must be counter, ratio or throughput, not " + name);
}

const char* kind_name(CUpti_MetricType type) {
  for (const auto& k : kKinds)
    if (type == k.type) return k.name;
  return "unknown";
}

// Python threads may share one; CUPTI's host object may not be shared. The GIL is dropped before the mutex is
// taken, so neither waits for the other.
struct MetricPlanner {
  std::mutex mutex;  // guards planner
  Planner planner;

  MetricPlanner(std::shared_ptr<const Api> api, PlanRequest request)
      : planner(std::move(api), std::move(request)) {}

  template <class Call>
  auto locked(Call call) {
    py::gil_scoped_release nogil;
    std::lock_guard lock(mutex);
    return call(planner);
  }
};

std::unique_ptr<MetricPlanner> make_planner(std::shared_ptr<Api> api, std::string chip, bool sampling,
                                            const std::optional<py::bytes>& availability) {
  PlanRequest request;
  request.chip = std::move(chip);
  request.type = sampling ? ProfilerType::kSampling : ProfilerType::kRange;
  if (availability) {
    const std::string_view bytes = *availability;
    request.availability.assign(bytes.begin(), bytes.end());
  }
  return std::make_unique<MetricPlanner>(std::move(api), std::move(request));
}

py::object properties(MetricPlanner& self, const std::string& name) {
  const auto p = self.locked([&](Planner& planner) { return planner.host().properties(name); });
  if (!p) return py::none();
  py::dict out;
  out["description"] = text(p->description);
  out["unit"] = text(p->dim_unit);
  out["hw_unit"] = text(p->hw_unit);
  out["kind"] = kind_name(p->type);
  return out;
}

py::array_t<double> evaluate(MetricPlanner& self, const py::bytes& image, size_t range,
                             const std::vector<std::string>& names) {
  const std::string_view bytes = image;
  std::vector<const char*> pointers;
  for (const std::string& n : names) pointers.push_back(n.c_str());
  py::array_t<double> values(static_cast<py::ssize_t>(names.size()));
  const std::span<double> out(values.mutable_data(), names.size());
  self.locked([&](Planner& planner) {
    planner.host().evaluate({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, range, pointers,
                            out);
  });
  return values;
}

}  // namespace

void register_counters_plan(py::module_& m) {
  py::class_<PassGroup>(m, "PassGroup", "Metrics that one configuration of the hardware collects together.")
      .def(py::init([](std::vector<std::string> metrics, const py::bytes& image, uint32_t passes) {
             const std::string_view bytes = image;
             return PassGroup{std::move(metrics), {bytes.begin(), bytes.end()}, passes};
           }),
           py::arg("metrics"), py::arg("image"), py::arg("passes"))
      .def_readonly("metrics", &PassGroup::metrics, "names, sorted")
      .def_readonly("passes", &PassGroup::passes, "how often the work must run")
      .def_property_readonly(
          "image",
          [](const PassGroup& g) {
            return py::bytes(reinterpret_cast<const char*>(g.image.data()), g.image.size());
          },
          "configuration image, as the profiler takes it");
  py::class_<MetricPlanner>(m, "MetricPlanner",
                            "Plans metrics of a chip with CUPTI's host API. Needs no GPU. Raises MetricError "
                            "for unknown chips and metrics, DeviceError where the library cannot plan.")
      .def(py::init(&make_planner), py::arg("library"), py::arg("chip"), py::arg("sampling") = false,
           py::arg("availability") = py::none())
      .def(
          "base_metrics",
          [](MetricPlanner& self, const std::string& kind) {
            const CUpti_MetricType type = metric_type(kind);
            return self.locked([&](Planner& p) { return p.host().base_metrics(type); });
          },
          py::arg("kind"), "Names without a roll-up; kind: counter, ratio or throughput")
      .def(
          "sub_metrics",
          [](MetricPlanner& self, const std::string& name) {
            return self.locked([&](Planner& p) { return p.host().sub_metrics(name); });
          },
          py::arg("name"), "Suffixes that the metric can have; empty: no such metric")
      .def("properties", &properties, py::arg("name"),
           "description, unit, hw_unit and kind of a metric with or without roll-up; None: no such metric")
      .def(
          "plan",
          [](MetricPlanner& self, const std::vector<std::string>& metrics) {
            return self.locked([&](Planner& p) { return p.plan(metrics); });
          },
          py::arg("metrics"), "One group a configuration; those that cannot coexist are split")
      .def(
          "one_pass_groups",
          [](MetricPlanner& self, const std::vector<std::string>& metrics) {
            return self.locked([&](Planner& p) { return p.one_pass_groups(metrics); });
          },
          py::arg("metrics"),
          "Few groups of one pass each. MetricError names metrics that alone need several")
      .def("evaluate", &evaluate, py::arg("image"), py::arg("range"), py::arg("names"),
           "float64 values of the metrics in one range of a counter-data image; NaN: not in it. The image "
           "must "
           "come from CUPTI on this machine or a trusted one: the library does not check it");
  m.def(
      "preload_nvperf", [](const std::shared_ptr<Api>& api) { preload_nvperf(*api); }, py::arg("library"),
      py::call_guard<py::gil_scoped_release>(),
      "Load libnvperf_host.so and libnvperf_target.so from beside the library, before counters are "
      "collected. "
      "Raises DeviceError.");
  m.def(
      "planning_library",
      [](const std::string& path, int version) {
        return std::const_pointer_cast<Api>(planning_library(path, version));
      },
      py::arg("path"), py::arg("version") = 0,
      "A libcupti that cannot be loaded for want of a driver (CUDA 13.2 and newer), for planning only. "
      "version: as cuptiGetVersion would give it, 130500; 0: unknown. Raises DeviceError.");
  m.def(
      "metric_chips",
      [](const std::shared_ptr<Api>& api) {
        py::gil_scoped_release nogil;
        return metric_chips(*api);
      },
      py::arg("library"), "Exact names of the chips that the library knows. Loads nvperf.");
  m.def(
      "chips_with_metric",
      [](const std::shared_ptr<Api>& api, const std::string& name, bool sampling) {
        py::gil_scoped_release nogil;
        return chips_with(api, name, sampling ? ProfilerType::kSampling : ProfilerType::kRange);
      },
      py::arg("library"), py::arg("name"), py::arg("sampling") = false,
      "Names of the chips that have the metric.");
}

}  // namespace cuptiprof
