// Sizes of activity records as each emulated libcupti writes them. Offsets are the same everywhere; what
// differs is how far one record is from the next.
#pragma once
#include <cupti_activity.h>

#include <cstddef>
#include <cstdint>

namespace sim {

// 0: a kind this stand-in never writes.
inline size_t stride(CUpti_ActivityKind kind, uint32_t version) {
  const bool v128 = version >= 120800;
  const bool v130 = version >= 130000;
  const bool v131 = version >= 130100;
  const bool v134 = version >= 130400;
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return v134 ? 248 : version >= 130300 ? 232 : v131 ? 224 : v130 ? 216 : 208;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return v134 ? 112 : v128 ? 96 : 88;
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return v134 ? 104 : 88;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return 96;
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return v128 ? 56 : 40;
    case CUPTI_ACTIVITY_KIND_CONTEXT:
      return v131 ? 40 : 32;
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return 40;
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return 24;
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return 56;
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
      return v128 ? sizeof(CUpti_ActivityCudaEvent2) : 24;
    case CUPTI_ACTIVITY_KIND_MEMORY2:
      return sizeof(CUpti_ActivityMemory4);
    case CUPTI_ACTIVITY_KIND_DEVICE:
      return sizeof(CUpti_ActivityDevice5);
    case CUPTI_ACTIVITY_KIND_STREAM:
      return sizeof(CUpti_ActivityStream);
    default:
      return 0;
  }
}

// What cuptiGetVersion says for an emulated CUDA version.
inline uint32_t api_version(uint32_t version) {
  if (version >= 130000) return version;
  return version >= 120900 ? 27 : version >= 120800 ? 26 : 24;
}

}  // namespace sim
