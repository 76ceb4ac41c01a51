// Probes for Python: the embedded kernels, and a GPU to run them on.
#include <pybind11/stl.h>

#include "bindings/bindings.h"
#include "probes/probe_device.h"
#include "probes/probe_images.h"
#include "probes/shape.h"

namespace py = pybind11;

namespace cuptiprof {

void register_probes(py::module_& m) {
  using probes::ProbeDevice;
  const auto nogil = py::call_guard<py::gil_scoped_release>();
  m.def(
      "probe_images",
      [] {
        py::dict out;
        for (const probes::Image& i : probes::images())
          out[i.subject] = py::bytes(reinterpret_cast<const char*>(i.data), i.size);
        return out;
      },
      "Subject -> fatbin of the embedded probe kernels; empty: built without nvcc");
  py::dict shape;
  shape["chains"] = probes::kChains;
  shape["ops_per_iteration"] = probes::kOpsPerIteration;
  shape["mma_per_iteration"] = probes::kMmaPerIteration;
  shape["shared_per_iteration"] = probes::kSharedPerIteration;
  shape["shared_words"] = probes::kSharedWords;
  shape["straight_short"] = probes::kStraightShort;
  shape["straight_long"] = probes::kStraightLong;
  shape["live_registers"] = probes::kLiveRegisters;
  m.attr("PROBE_SHAPE") = shape;

  py::class_<ProbeDevice, std::shared_ptr<ProbeDevice>>(
      m, "ProbeDevice", "A GPU, with the probe kernels loaded unless they are not wanted.")
      .def(py::init([](const std::shared_ptr<Api>& api, int device, bool with_probes) {
             return std::make_shared<ProbeDevice>(api, device, with_probes);
           }),
           py::arg("library"), py::arg("device") = 0, py::kw_only(), py::arg("with_probes") = true, nogil)
      .def_static(
          "count", [](const Api& api) { return ProbeDevice::count(api); }, py::arg("library"), nogil)
      .def_property_readonly("context", &ProbeDevice::context)
      .def("attribute", &ProbeDevice::attribute, py::arg("id"), nogil)
      .def("kernel_attribute", &ProbeDevice::kernel_attribute, py::arg("kernel"), py::arg("id"), nogil)
      .def("memory_info", &ProbeDevice::memory_info, nogil, "[free, total] bytes")
      .def("allocate", &ProbeDevice::allocate, py::arg("size"), py::arg("zeroed") = true, nogil)
      .def("allocate_host", &ProbeDevice::allocate_host, py::arg("size"), nogil)
      .def("free", &ProbeDevice::free, py::arg("address"), nogil)
      .def("read_word", &ProbeDevice::read_word, py::arg("address"), nogil)
      .def(
          "load_module",
          [](ProbeDevice& d, const py::bytes& image) {
            const std::string copy = image;
            const py::gil_scoped_release nogil;
            d.load_module(copy);
          },
          py::arg("image"), "Kernels of PTX text or of a cubin")
      .def("launch", &ProbeDevice::launch, py::arg("kernel"), py::arg("grid"), py::arg("block"),
           py::arg("shared"), py::arg("stream"), py::arg("arguments"), nogil)
      .def(
          "copy",
          [](ProbeDevice& d, int kind, uint64_t to, uint64_t from, size_t bytes, uint64_t stream) {
            d.copy(static_cast<ProbeDevice::Copy>(kind), to, from, bytes, stream);
          },
          py::arg("kind"), py::arg("destination"), py::arg("source"), py::arg("size"), py::arg("stream"),
          nogil)
      .def("copy_peer", &ProbeDevice::copy_peer, py::arg("destination"), py::arg("other"), py::arg("source"),
           py::arg("size"), py::arg("stream"), nogil)
      .def("set", &ProbeDevice::set, py::arg("destination"), py::arg("value"), py::arg("width"),
           py::arg("count"), py::arg("stream"), nogil)
      .def("make_stream", &ProbeDevice::make_stream, nogil)
      .def("order", &ProbeDevice::order, py::arg("first"), py::arg("then"), nogil)
      .def("make_event", &ProbeDevice::make_event, nogil)
      .def("record", &ProbeDevice::record, py::arg("event"), py::arg("stream"), nogil)
      .def("passed", &ProbeDevice::passed, py::arg("event"), nogil)
      .def("elapsed_ns", &ProbeDevice::elapsed_ns, py::arg("first"), py::arg("second"), nogil)
      .def("begin_capture", &ProbeDevice::begin_capture, py::arg("stream"), nogil)
      .def("end_capture", &ProbeDevice::end_capture, py::arg("stream"), nogil)
      .def("launch_graph", &ProbeDevice::launch_graph, py::arg("graph"), py::arg("stream"), nogil)
      .def("synchronize", &ProbeDevice::synchronize, nogil);
}

}  // namespace cuptiprof
