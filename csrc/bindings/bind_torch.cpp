// PyTorch's operators for Python: which torch is there, and the trial that shows where its fields are.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/text.h"
#include "collect/torch/collective_records.h"
#include "collect/torch/operator_observer.h"
#include "collect/torch/operator_trial.h"

namespace py = pybind11;

namespace cuptiprof {
namespace {

torch::Library required_library(const std::string& path) {
  const torch::Library library = torch::find_library(path);
  if (!library) throw py::value_error("no libtorch_cpu.so with the functions that are needed is loaded");
  return library;
}

}  // namespace

void register_torch(py::module_& m) {
  m.def(
      "finds_torch", [](const std::string& path) { return static_cast<bool>(torch::find_library(path)); },
      py::arg("path"),
      "Whether the libtorch_cpu.so of this process (its path, should it be loaded under another name) has "
      "the functions of at::RecordFunction that are used.");
  m.def(
      "begin_operator_trial",
      [](const std::string& path, uint32_t inputs) {
        const torch::Library library = required_library(path);
        if (inputs + 16 > torch::kTrialBytes) throw py::value_error("no such field");
        torch::begin_trial(library, inputs);
        return library.current_thread();
      },
      py::arg("path"), py::arg("inputs") = 0,
      "Keeps what torch says of the calling thread's operators, and with `inputs`, where a RecordFunction "
      "has "
      "these, their tags; returns torch's number of that thread.");
  m.def(
      "end_operator_trial",
      [](const std::string& path) {
        py::list out;
        for (const torch::TrialCall& call : torch::end_trial(required_library(path)))
          out.append(py::make_tuple(py::bytes(call.name), py::bytes(call.bytes), call.inputs));
        return out;
      },
      py::arg("path"), "[(name, the first bytes of its RecordFunction, tags of its inputs), ...] in order.");
  m.def(
      "know_torch",
      [](const std::string& path, uint32_t thread, uint32_t scope, uint32_t sequence, uint32_t forward_thread,
         uint32_t inputs, uint32_t sizes, uint32_t type, uint32_t tensor, uint32_t list, uint32_t scalars) {
        for (const uint32_t offset : {thread, scope, sequence, forward_thread, inputs + 8})
          if (offset + 8 > torch::kTrialBytes) throw py::value_error("no such field");
        torch::know_torch(required_library(path), {thread, scope, sequence, forward_thread},
                          {inputs, sizes, type, tensor, list, scalars});
      },
      py::arg("path"), py::arg("thread"), py::arg("scope"), py::arg("sequence"), py::arg("forward_thread"),
      py::kw_only(), py::arg("inputs") = 0, py::arg("sizes") = 0, py::arg("type") = 0, py::arg("tensor") = 0,
      py::arg("list") = 0, py::arg("scalars") = 0,
      "Where the fields of its RecordFunctions are, in bytes, and, where they were found, those of inputs: "
      "sizes and type in a tensor; tags of tensors, lists and (a bit each) numbers. Sessions observe "
      "operators "
      "from here on.");
  m.def("knows_torch", &torch::knows_torch, "know_torch() was called.");
  m.def(
      "reads_collectives",
      [](const std::string& path) { return torch::find_collective_facts(required_library(path).handle); },
      py::arg("path"), "Whether what this torch's backends say of collectives can be read.");
  m.def("keep_collectives", &torch::keep_collectives, py::arg("room"),
        "So many records of collectives are kept from here on until they are taken; 0: none.");
  m.def(
      "take_collectives",
      [] {
        const torch::TakenCollectives taken = torch::take_collectives();
        py::list out;
        for (const torch::CollectiveRecord& r : taken.records) {
          const torch::CollectiveFacts& f = r.facts;
          out.append(py::make_tuple(r.start, r.end, r.thread, visible_text(f.name), visible_text(f.group),
                                    visible_text(f.group_description), visible_text(f.type), f.in_elements,
                                    f.out_elements, f.rank, f.group_size, f.first_rank, f.rank_stride,
                                    f.sequence, f.is_async));
        }
        return py::make_tuple(out, taken.lost);
      },
      "[(start, end, thread, name, group, description, type, elements given and got, rank, ranks of the "
      "group, the first and the distance between them, number in the group, whether asynchronous), ...] of "
      "collectives that ended since, and for how many there was no room.");
}

}  // namespace cuptiprof
