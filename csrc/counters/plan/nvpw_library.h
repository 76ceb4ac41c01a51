// Calls of libnvperf_host by name, and what planning needs more than one of them for.
#pragma once
#include <string>
#include <vector>

#include "counters/plan/metric_host.h"
#include "counters/plan/nvpw.h"

namespace cuptiprof {

class NvpwLibrary {
 public:
  // Loads the libnvperf_host beside this libcupti. Throws Error (kDevice).
  explicit NvpwLibrary(const Api& api);

  // `size`: CP_NVPW_SIZE of the structure. Throws Error (kDevice) when the function fails or is missing.
  template <class Params>
  void call(const char* function, Params& p, size_t size) const {
    if (const nvpw::Status status = attempt(function, p, size); status != 0) fail(function, status);
  }
  // The same, but a failure is the caller's to judge.
  template <class Params>
  nvpw::Status attempt(const char* function, Params& p, size_t size) const {
    const auto f = reinterpret_cast<nvpw::Status (*)(Params*)>(function_named(function));
    p.struct_size = size;
    return f(&p);
  }

 private:
  void* function_named(const char* function) const;
  [[noreturn]] void fail(const char* function, nvpw::Status status) const;

  void* x_handle;
  std::string x_path;
};

// One configuration of these raw counters; `rc` tells when they cannot be scheduled.
ConfigImage nvpw_configure(const NvpwLibrary& library, const std::string& chip, ProfilerType type,
                           const std::vector<std::string>& raw);

}  // namespace cuptiprof
