// Caches and clocks while counting (CUDA 13.4).
#pragma once
#include <cstddef>
#include <cstdint>

namespace sim {

constexpr int kFirstWithControls = 130400;
// CUpti_RangeProfiler_Enable_Params with its last field, cacheControlMode.
constexpr size_t kEnableParamsWithCache = 36;

// Of the range profiler that was enabled last: CUpti_CacheControl_Mode.
void note_cache_control(uint32_t mode);
// Nobody holds clocks any more.
void drop_controls();

}  // namespace sim
