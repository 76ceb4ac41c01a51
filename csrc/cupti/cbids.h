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

// Driver calls that allocate memory or release it, and those that make, trim and destroy pools of it.
std::span<const CUpti_CallbackId> driver_allocation_cbids();

// Driver calls that take modules away, and with them the names that records point at.
std::span<const CUpti_CallbackId> driver_unload_cbids();

// Driver calls that begin or end a stream capture.
std::span<const CUpti_CallbackId> driver_capture_cbids();

// Newer than the headers we build with: CUDA 13.5.
inline constexpr CUpti_CallbackId kBeginRecaptureToGraph = 846, kBeginRecaptureToGraph_ptsz = 847;

inline bool is_capture_begin(CUpti_CallbackId cbid) {
  switch (cbid) {
    case CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture:
    case CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_ptsz:
    case CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2:
    case CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2_ptsz:
    case CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph:
    case CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph_ptsz:
    case kBeginRecaptureToGraph:
    case kBeginRecaptureToGraph_ptsz:
      return true;
    default:
      return false;
  }
}

inline bool is_capture_end(CUpti_CallbackId cbid) {
  return cbid == CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture ||
         cbid == CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture_ptsz;
}

// Driver calls that update an executable graph from a graph.
std::span<const CUpti_CallbackId> driver_graph_update_cbids();

inline bool is_graph_update(CUpti_CallbackId cbid) {
  return cbid == CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate ||
         cbid == CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate_v2;
}

// Of which only the last one takes modules away.
inline bool is_primary_release(CUpti_CallbackId cbid) {
  return cbid == CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRelease ||
         cbid == CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRelease_v2;
}

inline bool is_unload(CUpti_CallbackId cbid) {
  switch (cbid) {
    case CUPTI_DRIVER_TRACE_CBID_cuModuleUnload:
    case CUPTI_DRIVER_TRACE_CBID_cuLibraryUnload:
    case CUPTI_DRIVER_TRACE_CBID_cuCtxDestroy:
    case CUPTI_DRIVER_TRACE_CBID_cuCtxDestroy_v2:
    case CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRelease:
    case CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRelease_v2:
    case CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxReset:
    case CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxReset_v2:
      return true;
    default:
      return false;
  }
}

// "cudaLaunchKernel_v7000" -> "cudaLaunchKernel", "cuMemcpyHtoDAsync_v2" -> "cuMemcpyHtoDAsync".
std::string_view base_name(std::string_view callback_name);

}  // namespace cuptiprof
