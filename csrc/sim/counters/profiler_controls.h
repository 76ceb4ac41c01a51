// Caches and clocks while counting (CUDA 13.4). The stand-in only notes them: no value depends on either.
#pragma once
#include <cstddef>
#include <cstdint>

namespace sim {

constexpr int kFirstWithControls = 130400;
// CUpti_RangeProfiler_Enable_Params with its last field, cacheControlMode.
constexpr size_t kEnableParamsWithCache = 36;

constexpr uint32_t kLastCacheMode = 2;  // of CUpti_CacheControl_Mode

// Of the range profiler that was enabled last: CUpti_CacheControl_Mode.
void note_cache_control(uint32_t mode);
// Nobody holds clocks any more.
void drop_controls();

}  // namespace sim
