// Activity records as views over the bytes that libcupti wrote.
//
// Offsets are the same in every library from 12.6 to 13.5; what grows is the stride, and fields at the end
// exist only in newer ones. So nothing here is read by sizeof: the library's own iterator gives the start of
// each record, and the structs of the headers we build with are read only up to the fields that every
// supported library writes (abi_check.cpp asserts the offsets).
#pragma once
#include <cupti_activity.h>

#include <cstddef>
#include <cstdint>

namespace cuptiprof {

// cuptiGetVersion at which a field appears (26 is CUDA 12.8, 130000 is 13.0).
inline constexpr uint32_t kMemcpyHasCopyCount = 26;           // CUpti_ActivityMemcpy6
inline constexpr uint32_t kSyncHasReturnValue = 26;           // CUpti_ActivitySynchronization2
inline constexpr uint32_t kContextHasGreen = 26;              // CUpti_ActivityContext3
inline constexpr uint32_t kKernelHasDeviceLaunched = 130000;  // CUpti_ActivityKernel10
inline constexpr uint32_t kDeviceNameIsOurs = 130000;         // to free; shared and CUPTI's before

// sourceGraphNodeId: the node that a graph's was instantiated or last updated from. Its offsets are those of
// CUpti_ActivityKernel13, CUpti_ActivityMemcpy7 and CUpti_ActivityMemset5 in the headers of 13.5.
inline constexpr uint32_t kWorkHasSourceNode = 130400;
inline constexpr size_t kKernelSourceNode = 240, kMemcpySourceNode = 104, kMemsetSourceNode = 96,
                        kNoSourceNode = 0;  // peer-to-peer copies

inline bool is_kernel(const CUpti_Activity* record) {
  return record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || record->kind == CUPTI_ACTIVITY_KIND_KERNEL;
}

// The graph node whose work this is; 0: none's.
inline uint64_t graph_node_of(const CUpti_Activity* record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_KERNEL:
      return reinterpret_cast<const CUpti_ActivityKernel10*>(record)->graphNodeId;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return reinterpret_cast<const CUpti_ActivityMemcpy6*>(record)->graphNodeId;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return reinterpret_cast<const CUpti_ActivityMemcpyPtoP4*>(record)->graphNodeId;
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return reinterpret_cast<const CUpti_ActivityMemset4*>(record)->graphNodeId;
    default:
      return 0;
  }
}

}  // namespace cuptiprof
