// The copies of NVTX in this process. Each library that uses NVTX carries one, and each asks for a tool once,
// at its own first call: whom it reports to is then settled.
#pragma once
#include <string>
#include <vector>

namespace cuptiprof {

struct NvtxCopy {
  enum class State {
    kFresh,      // no call yet: it will ask NVTX_INJECTION64_PATH
    kNobody,     // it asked, and nothing was named: its calls do nothing, for good
    kOurs,       // it reports to our library
    kOtherTool,  // to `tool`
  };
  std::string library;  // "": the program itself
  State state;
  std::string tool;
};

// Those of all loaded libraries, found by their own table of functions, of which they know the address (also
// where symbols were stripped). Takes the loader's lock.
std::vector<NvtxCopy> nvtx_copies();

}  // namespace cuptiprof
