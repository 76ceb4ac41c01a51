// Lines of Python code, for Python.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bindings/bindings.h"
#include "bindings/frames/python_lines.h"
#include "bindings/text.h"
#include "threads/frame_tree.h"

namespace py = pybind11;

namespace cuptiprof {
namespace {

// As a launch callback reads them: without the GIL.
py::list read_frames() {
  prepare_frames();
  uint32_t node;
  {
    const py::gil_scoped_release released;
    node = current_frame(FrameLevel::kStack);
  }
  py::list out;
  for (; node != 0; node = g_frame_tree.parent(node)) {
    const FramePlace p = g_frame_tree.place(node);
    out.append(py::make_tuple(text(p.file), text(p.function), p.line));
  }
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
}

}  // namespace cuptiprof
