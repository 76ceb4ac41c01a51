// Activity records as views over the bytes that libcupti wrote.
//
// Offsets are the same in every library from 12.6 to 13.5; what grows is the stride, and fields at the end
// exist only in newer ones. So nothing here is read by sizeof: the library's own iterator gives the start of
// each record, and the structs of the headers we build with are read only up to the fields that every
// supported library writes (abi_check.cpp asserts the offsets).
#pragma once
#include <cupti_activity.h>

#include <cstdint>

namespace cuptiprof {

// cuptiGetVersion at which a field appears (26 is CUDA 12.8, 130000 is 13.0).
inline constexpr uint32_t kMemcpyHasCopyCount = 26;           // CUpti_ActivityMemcpy6
inline constexpr uint32_t kSyncHasReturnValue = 26;           // CUpti_ActivitySynchronization2
inline constexpr uint32_t kContextHasGreen = 26;              // CUpti_ActivityContext3
inline constexpr uint32_t kKernelHasDeviceLaunched = 130000;  // CUpti_ActivityKernel10
inline constexpr uint32_t kDeviceNameIsOurs = 130000;         // to free; shared and CUPTI's before

}  // namespace cuptiprof
