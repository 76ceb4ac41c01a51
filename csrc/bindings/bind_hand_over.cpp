// Regions handed from one thread to another, for Python.
#include "collect/regions/hand_over.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>

#include "bindings/bindings.h"
#include "collect/regions/regions.h"

namespace py = pybind11;

namespace cuptiprof {
namespace {

uint64_t task() { return g_task_key.load(std::memory_order_relaxed)(); }

std::optional<RegionToken> current() {
  const RegionToken token = hand_over(task());
  return token.number ? std::optional(token) : std::nullopt;
}

}  // namespace

void register_hand_over(py::module_& m) {
  py::class_<RegionToken>(m, "RegionToken",
                          "The region that was open where it was taken; for cuptiprof.carry.");
  m.def("_hand_over", &current,
        "A token of the calling thread's and task's innermost region; None: none is open.");
  m.def("_task", &task, "What tells the running contextvars.Context from others; 0: the thread's outermost.");
  m.def(
      "_adopt", [](const RegionToken& token) { return adopt_region(token, task()); }, py::arg("token"),
      "Work of the calling thread and task belongs to the token's region from now on; the ID for _release.");
  m.def(
      "_release",
      [](uint64_t id) {
        if (id != 0) exit_region(id, task());
      },
      py::arg("id"), "Ends what _adopt began.");
  m.def(
      "_backward_begins", [](bool of_torch) { backward_begins(task(), of_torch); },
      py::arg("of_torch") = false,
      "The calling thread enters torch's autograd engine (False: one that is played).");
  m.def("_backward_ends", &backward_ends, "It leaves it.");
}

}  // namespace cuptiprof
