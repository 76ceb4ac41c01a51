// libcupti for Python: loading it, and what it says of itself.
#include "cupti/api.h"

#include <pybind11/stl.h>

#include "bindings/bindings.h"
#include "cupti/call.h"
#include "cupti/cbids.h"

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
  check(api, api.cuptiSubscribe(&handle, [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}, nullptr),
        "cuptiSubscribe");
  api.cuptiUnsubscribe(handle);
}

py::list feature_list(const Api& api) {
  py::list out;
  for (const Feature& f : features(api)) out.append(py::make_tuple(f.name, f.works, f.missing));
  return out;
}

py::list device_names(const Api& api) {
  py::list out;
  int n = 0;
  if (!api.cuInit || api.cuInit(0) != CUDA_SUCCESS || api.cuDeviceGetCount(&n) != CUDA_SUCCESS) return out;
  for (int i = 0; i < n; ++i) {
    CUdevice device;
    char name[256] = "";
    if (api.cuDeviceGet(&device, i) == CUDA_SUCCESS) api.cuDeviceGetName(name, sizeof name, device);
    out.append(py::str(name));
  }
  return out;
}

}  // namespace

void register_cupti(py::module_& m) {
  const auto nogil = py::call_guard<py::gil_scoped_release>();
  py::class_<Api, std::shared_ptr<Api>>(m, "CuptiLibrary", "A loaded libcupti.")
      .def_readonly("version", &Api::version, "cuptiGetVersion()")
      .def_readonly("driver_version", &Api::driver_version, "cuDriverGetVersion(); 0: no driver")
      .def_readonly("simulated", &Api::simulated)
      .def_readonly("path", &Api::path)
      .def_readonly("found_by", &Api::found_by)
      .def("timestamp", &timestamp, "cuptiGetTimestamp(), ns")
      .def("result_string", &result_string, py::arg("code"))
      .def("callback_name", &callback_name, py::arg("domain"), py::arg("cbid"))
      .def("features", &feature_list, "[(feature, works, missing function), ...]")
      .def("device_names", &device_names, "GPU names by device ordinal; calls cuInit")
      .def("try_subscribe", &try_subscribe, nogil, "Raises CuptiError when another tool holds CUPTI");
  m.def(
      "load_cupti",
      [](std::string path, std::string found_by, bool simulated, bool safe_without_driver) {
        return std::const_pointer_cast<Api>(
            load_cupti({std::move(path), std::move(found_by), simulated, safe_without_driver}));
      },
      py::arg("path"), py::arg("found_by") = "", py::arg("simulated") = false, py::arg("safe_without_driver") = false,
      nogil);
  m.def("loaded_library", &loaded_library, py::arg("soname"), "Path of an already loaded library, or ''.");
  m.def("api_base_name", [](const std::string& name) { return std::string(base_name(name)); }, py::arg("name"),
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
