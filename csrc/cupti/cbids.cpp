#include "cupti/cbids.h"

#include <cctype>

namespace cuptiprof {

std::span<const CUpti_CallbackId> driver_gpu_work_cbids() {
  static constexpr CUpti_CallbackId ids[] = {
#define CP_LAUNCH(name) CUPTI_DRIVER_TRACE_CBID_##name,
#define CP_WORK(name) CUPTI_DRIVER_TRACE_CBID_##name,
#include "cupti/cbids.def"
#undef CP_LAUNCH
#undef CP_WORK
      // Newer than the headers (13.5): cuMemcpyWithAttributesAsync, cuMemcpy3DWithAttributesAsync, each with
      // its _ptsz.
      837, 838, 839, 840};
  return ids;
}

std::span<const CUpti_CallbackId> driver_allocation_cbids() {
  static constexpr CUpti_CallbackId ids[] = {
      CUPTI_DRIVER_TRACE_CBID_cuMemAlloc,
      CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2,
      CUPTI_DRIVER_TRACE_CBID_cuMemAllocPitch,
      CUPTI_DRIVER_TRACE_CBID_cuMemAllocPitch_v2,
      CUPTI_DRIVER_TRACE_CBID_cuMemAllocManaged,
      CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync,
      CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync_ptsz,
      CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync,
      CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync_ptsz,
      CUPTI_DRIVER_TRACE_CBID_cuMemFree,
      CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2,
      CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync,
      CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync_ptsz,
      CUPTI_DRIVER_TRACE_CBID_cuMemAllocHost,
      CUPTI_DRIVER_TRACE_CBID_cuMemAllocHost_v2,
      CUPTI_DRIVER_TRACE_CBID_cuMemHostAlloc,
      CUPTI_DRIVER_TRACE_CBID_cuMemHostAlloc_v2,
      CUPTI_DRIVER_TRACE_CBID_cuMemFreeHost,
      CUPTI_DRIVER_TRACE_CBID_cuMemPoolCreate,
      CUPTI_DRIVER_TRACE_CBID_cuMemPoolDestroy,
      CUPTI_DRIVER_TRACE_CBID_cuMemPoolTrimTo,
  };
  return ids;
}

std::span<const CUpti_CallbackId> driver_unload_cbids() {
  static constexpr CUpti_CallbackId ids[] = {
      CUPTI_DRIVER_TRACE_CBID_cuModuleUnload,
      CUPTI_DRIVER_TRACE_CBID_cuLibraryUnload,
      CUPTI_DRIVER_TRACE_CBID_cuCtxDestroy,
      CUPTI_DRIVER_TRACE_CBID_cuCtxDestroy_v2,
      CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRelease,
      CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRelease_v2,
      CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxReset,
      CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxReset_v2,
  };
  return ids;
}

std::span<const CUpti_CallbackId> driver_capture_cbids() {
  static constexpr CUpti_CallbackId ids[] = {
      CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture,
      CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_ptsz,
      CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2,
      CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2_ptsz,
      CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph,
      CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph_ptsz,
      kBeginRecaptureToGraph,
      kBeginRecaptureToGraph_ptsz,
      CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture,
      CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture_ptsz,
  };
  return ids;
}

std::span<const CUpti_CallbackId> driver_graph_update_cbids() {
  static constexpr CUpti_CallbackId ids[] = {CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate,
                                             CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate_v2};
  return ids;
}

std::string_view base_name(std::string_view name) {
  auto strip_stream_mode = [&name] {
    for (const std::string_view suffix : {"_ptsz", "_ptds"})
      if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  };
  strip_stream_mode();
  // One version only: cudaStreamGetCaptureInfo_v2_v11030 is the function cudaStreamGetCaptureInfo_v2.
  const size_t v = name.rfind("_v");
  if (v != std::string_view::npos && v + 2 < name.size()) {
    bool digits = true;
    for (const char c : name.substr(v + 2)) digits = digits && std::isdigit(static_cast<unsigned char>(c));
    if (digits) name = name.substr(0, v);
  }
  strip_stream_mode();
  return name;
}

}  // namespace cuptiprof
