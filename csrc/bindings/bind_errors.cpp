// C++ Error -> the Python class of the same kind in cuptiprof.errors.
#include "base/error.h"

#include "bindings/bindings.h"

namespace py = pybind11;

namespace cuptiprof {
namespace {

const char* class_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kCupti:
      return "CuptiError";
    case ErrorKind::kDevice:
      return "DeviceError";
    case ErrorKind::kSession:
      return "SessionError";
    case ErrorKind::kFilter:
      return "FilterError";
    case ErrorKind::kBudget:
      return "BudgetError";
    case ErrorKind::kResult:
      return "ResultError";
    case ErrorKind::kMetric:
      return "MetricError";
    case ErrorKind::kGeneric:
      break;
  }
  return "CuptiprofError";
}

void raise(const Error& e) {
  py::object cls = py::module_::import("cuptiprof.errors").attr(class_name(e.kind()));
  py::dict kwargs;
  kwargs["hint"] = e.hint();
  if (e.kind() == ErrorKind::kCupti) {
    kwargs["code"] = e.code();
    kwargs["name"] = e.name();
    kwargs["call"] = e.call();
  }
  py::object instance = cls(e.what(), **kwargs);
  PyErr_SetObject(cls.ptr(), instance.ptr());
}

}  // namespace

void register_errors(py::module_&) {
  py::register_exception_translator([](std::exception_ptr p) {
    try {
      if (p) std::rethrow_exception(p);
    } catch (const Error& e) {
      raise(e);
    }
  });
}

}  // namespace cuptiprof
