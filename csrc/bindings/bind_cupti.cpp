// libcupti for Python: loading it, and what it says of itself.
#include "cupti/api.h"

#include <pybind11/stl.h>

#include "bindings/bindings.h"
#include "cupti/call.h"
#include "cupti/cbids.h"
#include "cupti/detach.h"

namespace py = pybind11;

namespace cuptiprof {
namespace {

std::string result_string(const Api& api, int code) {
  const char* text = nullptr;
  if (api.cuptiGetResultString(static_cast<CUptiResult>(code), &text) != CUPTI_SUCCESS || !text) return {};
  return text;
}

std::string callback_name(const Api& api, int domain, uint32_t cbid) {
  const char* text = nullptr;
  const auto rc = api.cuptiGetCallbackName(static_cast<CUpti_CallbackDomain>(domain), cbid, &text);
  return rc == CUPTI_SUCCESS && text ? text : "";
}

uint64_t timestamp(const Api& api) {
  uint64_t t = 0;
  check(api, api.cuptiGetTimestamp(&t), "cuptiGetTimestamp");
  return t;
}

// A subscription taken and given back: says whether another tool holds CUPTI.
void try_subscribe(const Api& api) {
  CUpti_SubscriberHandle handle = nullptr;
  check(api,
        api.cuptiSubscribe(
            &handle, [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}, nullptr),
        "cuptiSubscribe");
  check(api, api.cuptiUnsubscribe(handle), "cuptiUnsubscribe");
}

// Walks a buffer of records with the library's own iterator, without copying it.
py::list record_kinds(const Api& api, const py::buffer& records, size_t valid) {
  const py::buffer_info info = records.request();
  const auto bytes = static_cast<size_t>(info.size * info.itemsize);
  if (valid > bytes) throw py::value_error("valid is larger than the buffer");
  auto* start = static_cast<uint8_t*>(info.ptr);
  py::list out;
  CUpti_Activity* record = nullptr;
  for (;;) {
    const CUptiResult rc = api.cuptiActivityGetNextRecord(start, valid, &record);
    if (rc == CUPTI_ERROR_MAX_LIMIT_REACHED) return out;
    check(api, rc, "cuptiActivityGetNextRecord");
    out.append(py::make_tuple(static_cast<int>(record->kind), reinterpret_cast<uint8_t*>(record) - start));
  }
}

size_t dropped_records(const Api& api) {
  size_t dropped = 0;
  check(api, api.cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped),
        "cuptiActivityGetNumDroppedRecords");
  return dropped;
}

py::list feature_list(const Api& api) {
  py::list out;
  for (const Feature& f : features(api)) {
    py::dict d;
    d["name"] = f.name;
    d["works"] = f.works;
    d["since"] = f.since;
    d["missing"] = f.missing;
    d["without"] = f.without;
    out.append(std::move(d));
  }
  return out;
}

}  // namespace

void register_cupti(py::module_& m) {
  const auto nogil = py::call_guard<py::gil_scoped_release>();
  py::class_<Api, std::shared_ptr<Api>>(m, "CuptiLibrary", "A loaded libcupti.")
      .def_readonly("version", &Api::version, "cuptiGetVersion()")
      .def_property_readonly(
          "cuda_version", [](const Api& a) { return cuda_version(a.version); },
          "CUDA release that `version` belongs to, \"13.0\"; \"\": unknown")
      .def_readonly("driver_version", &Api::driver_version, "cuDriverGetVersion(); 0: no driver")
      .def_readonly("simulated", &Api::simulated)
      .def_readonly("path", &Api::path)
      .def_readonly("found_by", &Api::found_by)
      .def("timestamp", &timestamp, "cuptiGetTimestamp(), ns")
      .def("result_string", &result_string, py::arg("code"))
      .def("callback_name", &callback_name, py::arg("domain"), py::arg("cbid"))
      .def("record_kinds", &record_kinds, py::arg("buffer"), py::arg("valid"),
           "[(activity kind, byte offset), ...] of the records in the first `valid` bytes, by the library's "
           "own iterator. "
           "Raises CuptiError where it stops early")
      .def("dropped_records", &dropped_records, "cuptiActivityGetNumDroppedRecords() of the global queue")
      .def("features", &feature_list,
           "What depends on the version of the library: dicts of name, works, since, missing, without")
      .def("finalize", &finalize_cupti, nogil,
           "Takes CUPTI out of the process. Nothing may be switched on in it. Raises CuptiError")
      .def("try_subscribe", &try_subscribe, nogil, "Raises CuptiError when another tool holds CUPTI");
  m.def(
      "load_cupti",
      [](std::string path, std::string found_by, bool simulated) {
        return std::const_pointer_cast<Api>(load_cupti({std::move(path), std::move(found_by), simulated}));
      },
      py::arg("path"), py::arg("found_by") = "", py::arg("simulated") = false, nogil,
      "Load a libcupti. Raises DeviceError.");
  m.def("loaded_library", &loaded_library, py::arg("soname"), "Path of an already loaded library, or ''.");
  m.def(
      "api_base_name", [](const std::string& name) { return std::string(base_name(name)); }, py::arg("name"),
      "API name without its version suffix.");
  m.def(
      "error_text",
      [](int code) {
        const ErrorText t = error_text(code);
        return py::make_tuple(result_name(code), t.what, t.hint);
      },
      py::arg("code"), "(name, what happened, what to do) of a CUPTI result code.");
}

}  // namespace cuptiprof
