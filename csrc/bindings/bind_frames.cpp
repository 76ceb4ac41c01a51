// Lines of Python code, for Python.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bindings/bindings.h"
#include "bindings/frames/module_objects.h"
#include "bindings/frames/python_lines.h"
#include "bindings/text.h"
#include "threads/frame_tree.h"
#include "threads/module_table.h"

namespace py = pybind11;

namespace cuptiprof {
namespace {

// As a launch callback reads them: without the GIL.
py::list read_frames() {
  prepare_frames();
  uint32_t node;
  {
    const py::gil_scoped_release released;
    node = current_frame(FrameLevel::kStack, false);
  }
  py::list out;
  for (; node != 0; node = g_frame_tree.parent(node)) {
    const FramePlace p = g_frame_tree.place(node);
    out.append(py::make_tuple(text(p.file), text(p.function), p.line));
  }
  return out;
}

PyCodeObject* code_of(const py::object& code) {
  if (!PyCode_Check(code.ptr())) throw py::type_error("not code");
  return reinterpret_cast<PyCodeObject*>(code.ptr());
}

// As a launch callback reads it: without the GIL.
uint64_t read_module(const py::object& call) {
  const PyCodeObject* code = code_of(call);
  const py::gil_scoped_release released;
  return reinterpret_cast<uint64_t>(argument_of_call(code));
}

py::dict names_of_modules() {
  py::dict out;
  for (const auto& [number, name] : module_names()) out[py::int_(number)] = text(name);
  return out;
}

}  // namespace

void register_frames(py::module_& m) {
  py::class_<FrameOrigins>(m, "FrameOrigins", "Whose code a frame is, by what the names of files begin with.")
      .def(py::init<std::vector<std::string>, std::vector<std::string>>(), py::kw_only(), py::arg("packages"),
           py::arg("user"));
  m.def("can_read_frames", &can_read_frames,
        "Whether the interpreter's frames can be read: of the Python this was built for, with a GIL.");
  m.def("read_frames", &read_frames,
        "[(file, function, line), ...] of the calling thread, innermost first, as a launch would see them.");
  m.def("read_module", &read_module, py::arg("call"),
        "id() of the first argument of the innermost frame that runs this code, as a launch would see it; 0: "
        "none.");
  m.def(
      "watch_modules",
      [](const py::object& module_class, const py::object& call) {
        code_of(call);
        if (!watch_modules(module_class.ptr(), call.ptr())) throw py::error_already_set();
      },
      py::arg("module_class"), py::arg("call"),
      "Launches know the module whose call, frames of this code, they are made in; the class tells of "
      "deaths.");
  m.def(
      "watch_recomputing",
      [](const py::object& call) {
        code_of(call);
        watch_recomputing(call.ptr());
      },
      py::arg("call"),
      "Of launches right below frames of this code, until unwatch_modules(), no module is known.");
  m.def("unwatch_modules", &unwatch_modules, "Leaves the class as it was.");
  m.def(
      "name_living_modules",
      [] {
        if (!name_living_modules()) throw py::error_already_set();
      },
      "Gives every living module its path, and looks whether those that have one are still there.");
  m.def(
      "has_nameless_modules", [] { return g_module_table.has_nameless(); },
      "Launches saw modules without a path since name_living_modules().");
  m.def("module_names", &names_of_modules, "{number: path} of the modules that launches saw.");
}

}  // namespace cuptiprof
