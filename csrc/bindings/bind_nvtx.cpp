// NVTX for Python: our library, and whom the copies of NVTX in this process report to.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <new>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/text.h"
#include "collect/nvtx/copies.h"
#include "collect/nvtx/nvtx_library.h"

namespace py = pybind11;

namespace cuptiprof {
namespace {

const char* text_of(NvtxCopy::State state) {
  switch (state) {
    case NvtxCopy::State::kFresh:
      return "fresh";
    case NvtxCopy::State::kNobody:
      return "nobody";
    case NvtxCopy::State::kOurs:
      return "ours";
    case NvtxCopy::State::kOtherTool:
      return "other";
  }
  return "";
}

}  // namespace

void register_nvtx(py::module_& m) {
  m.def(
      "open_nvtx_library", [](const std::string& path) { NvtxLibrary::open(path); }, py::arg("path"),
      "Loads the library that NVTX is to load, or finds it loaded; it stays for the life of the process.");
  m.def(
      "nvtx_names",
      [] {
        using Names = std::map<std::string, std::map<uint64_t, std::string>>;
        Names out{{"threads", {}}, {"devices", {}}};
        if (const nvtx::Link* link = NvtxLibrary::opened())
          link->names(
              [](void* user, nvtx::Named what, uint64_t object, const char* name) {
                try {
                  (*static_cast<Names*>(user))[what == nvtx::Named::kThread ? "threads" : "devices"][object] =
                      name;
                } catch (const std::bad_alloc&) {  // the library that calls is C
                }
              },
              &out);
        py::dict as_text;
        for (const auto& [what, names] : out) {
          py::dict by_number;
          for (const auto& [number, name] : names) by_number[py::int_(number)] = visible_text(name);
          as_text[py::str(what)] = by_number;
        }
        return as_text;
      },
      "What the program called its threads (by system thread ID) and devices (by ordinal) by NVTX.");
  m.def(
      "nvtx_copies",
      [] {
        std::vector<NvtxCopy> copies;
        {
          const py::gil_scoped_release nogil;  // another thread may load a library that wants the GIL
          copies = nvtx_copies();
        }
        std::vector<std::tuple<std::string, std::string, std::string>> out;
        for (const NvtxCopy& c : copies) out.emplace_back(c.library, text_of(c.state), c.tool);
        return out;
      },
      "(library that carries it, whom it reports to, that tool) of each copy of NVTX in this process. The "
      "second: "
      "fresh (no call yet), ours, other, nobody.");
}

}  // namespace cuptiprof
