// What CUPTI's callback IDs mean to us.
#pragma once
#include <cuda.h>
#include <cupti_callbacks.h>

#include <cupti_driver_cbid.h>

#include <span>
#include <string_view>

namespace cuptiprof {

// Every driver call that gives the GPU work: kernel launches, copies, sets, graph launches. Runtime calls end
// in one of them, with the same correlation ID.
std::span<const CUpti_CallbackId> driver_gpu_work_cbids();

inline bool is_kernel_launch(CUpti_CallbackId cbid) {
  switch (cbid) {
#define CP_LAUNCH(name) case CUPTI_DRIVER_TRACE_CBID_##name:
#define CP_WORK(name)
#include "cupti/cbids.def"
#undef CP_LAUNCH
#undef CP_WORK
    return true;
    default:
      return false;
  }
}

// Driver calls that take modules away, and with them the names that records point at.
std::span<const CUpti_CallbackId> driver_unload_cbids();
bool is_unload(CUpti_CallbackId cbid);

// "cudaLaunchKernel_v7000" -> "cudaLaunchKernel", "cuMemcpyHtoDAsync_v2" -> "cuMemcpyHtoDAsync".
std::string_view base_name(std::string_view callback_name);

}  // namespace cuptiprof
