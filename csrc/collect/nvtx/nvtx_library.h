// libcuptiprof_nvtx.so, which NVTX loads: found where it is loaded, or loaded, and its link.
#pragma once
#include <string>

#include "nvtx/link.h"

namespace cuptiprof {

class NvtxLibrary {
 public:
  // The library at `path`, for the life of the process. Throws Error where it cannot be loaded, or is another
  // version's.
  static const nvtx::Link& open(const std::string& path);
  // Null: nobody opened it.
  static const nvtx::Link* opened() noexcept;
  // Whether that is the base address of a library that has our link.
  static bool is_it(const void* base) noexcept;
};

}  // namespace cuptiprof
