// Python text <-> UTF-8 that may hold anything a kernel name or file may hold.
#pragma once
#include <pybind11/pybind11.h>

#include <string>
#include <string_view>

namespace cuptiprof {

// All with the GIL. utf8() and text() are inverse to each other, for what goes in and comes back (filters,
// paths); visible_text() is for what people read.

// Lone surrogates pass: names that Python decoded with surrogateescape are text like any other here.
inline std::string utf8(const pybind11::handle& text) {
  if (!PyUnicode_Check(text.ptr()))
    throw pybind11::type_error("expected str, got " + std::string(pybind11::str(pybind11::type::of(text))));
  const pybind11::object bytes = pybind11::reinterpret_steal<pybind11::object>(
      PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogatepass"));
  if (!bytes) throw pybind11::error_already_set();
  return {PyBytes_AS_STRING(bytes.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

// Whatever C++ cut or kept, as text that can come back in.
inline pybind11::str text(std::string_view s) {
  PyObject* out = PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "surrogatepass");
  if (!out) {
    PyErr_Clear();
    out = PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "replace");
  }
  if (!out) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::str>(out);
}

// A kernel name is whatever the driver has: bytes that are not UTF-8 are kept visible rather than refused.
inline pybind11::str visible_text(std::string_view s) {
  return pybind11::reinterpret_steal<pybind11::str>(
      PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "backslashreplace"));
}

}  // namespace cuptiprof
