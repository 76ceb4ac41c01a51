// What is newer than the headers we build with, as those of CUDA 13.5 declare it.
#pragma once
#include <cuda.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_result.h>
#include <cupti_version.h>

#include <cstddef>
#include <cstdint>

#if CUPTI_API_VERSION < 130400
extern "C" {
typedef int CUpti_ClockControl_Mode;
typedef int CUpti_ClockControl_Status;
CUptiResult CUPTIAPI cuptiClockControlGetStatus(CUcontext ctx, CUpti_ClockControl_Status* status);
CUptiResult CUPTIAPI cuptiClockControlLock(CUcontext ctx, CUpti_ClockControl_Mode mode);
CUptiResult CUPTIAPI cuptiClockControlUnlock(void);
}
#endif

namespace cuptiprof {

constexpr int kControlsCachesAndClocks = 130400;  // cuptiGetVersion

// CUpti_RangeProfiler_Enable_Params with cacheControlMode.
struct EnableParamsWithCache {
  size_t structSize;
  void* pPriv;
  CUcontext ctx;
  CUpti_RangeProfiler_Object* pRangeProfilerObject;
  uint32_t cacheControlMode;
};
constexpr size_t kEnableParamsWithCacheSize =
    offsetof(EnableParamsWithCache, cacheControlMode) + sizeof(uint32_t);
static_assert(offsetof(EnableParamsWithCache, pRangeProfilerObject) ==
              offsetof(CUpti_RangeProfiler_Enable_Params, pRangeProfilerObject));
constexpr uint32_t kCacheControlAll = 1;  // CUPTI_CACHE_CONTROL_MODE_ALL
// CUPTI_CLOCK_CONTROL_MODE_*; CUPTI_CLOCK_CONTROL_STATUS_LOCKED
constexpr int kClocksAtBase = 1, kClocksAtBoost = 2, kClocksAreLocked = 2;

}  // namespace cuptiprof
