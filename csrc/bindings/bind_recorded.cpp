// Recorded activity buffers for Python (benchmarks.record_fixtures writes them, tests read them).
#include <pybind11/stl.h>

#include "bindings/bindings.h"
#include "collect/records/recorded_buffers.h"
#include "cupti/api.h"

namespace py = pybind11;

namespace cuptiprof {
namespace {

constexpr size_t kMargin = 512;  // bytes: a record at the end of a cut buffer may be read past it

py::tuple detach(const Api& api, const py::bytes& buffer, std::vector<std::string> strings) {
  std::string_view bytes = buffer;
  std::vector<uint64_t> aligned((bytes.size() + kMargin) / sizeof(uint64_t) + 1);
  bytes.copy(reinterpret_cast<char*>(aligned.data()), bytes.size());
  detach_strings(api, reinterpret_cast<uint8_t*>(aligned.data()), bytes.size(), strings);
  py::list texts;
  for (const auto& s : strings) texts.append(py::bytes(s));
  return py::make_tuple(py::bytes(reinterpret_cast<const char*>(aligned.data()), bytes.size()), texts);
}

py::tuple decode(const Api& api, const std::vector<std::string>& buffers,
                 const std::vector<std::string>& strings) {
  struct Kept {  // the store refers to its losses
    Losses losses;
    std::unique_ptr<Store> store;
  };
  const auto kept = std::make_shared<Kept>();
  kept->store = decode_recorded(api, buffers, strings, kept->losses);
  const std::shared_ptr<Store> store(kept, kept->store.get());
  py::dict lost;
#define CP_LOSS(name, doc) lost[#name] = kept->losses.name.load();
  CP_LOSSES(CP_LOSS)
#undef CP_LOSS
  return py::make_tuple(store, lost);
}

}  // namespace

void register_recorded(py::module_& m) {
  m.def("detach_strings", &detach, py::arg("library"), py::arg("buffer"), py::arg("strings"),
        "(buffer with string indices for pointers, strings) of a buffer that the library just completed in "
        "this "
        "process; `strings`: those of earlier buffers. The pointers are followed: never give it bytes from a "
        "file.");
  m.def("decode_recorded", &decode, py::arg("library"), py::arg("buffers"), py::arg("strings"),
        "(Store, losses) of recorded buffers. Raises CuptiprofError for what cannot have been recorded.");
}

}  // namespace cuptiprof
