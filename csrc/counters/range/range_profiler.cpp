#include "counters/range/range_profiler.h"

#include <string>

#include "base/error.h"
#include "cupti/call.h"

namespace cuptiprof {
namespace {

constexpr size_t kFewestRanges = 16;  // fewer are not tried

}  // namespace

std::unique_ptr<RangeProfiler> RangeProfiler::enable(const Api& api, CUcontext context, CUptiResult* result,
                                                     bool resets_caches) noexcept try {
  EnableParamsWithCache p{};
  p.structSize = offsetof(EnableParamsWithCache, cacheControlMode);  // all that older releases know
  if (resets_caches && api.version >= kControlsCachesAndClocks) {
    p.structSize = kEnableParamsWithCacheSize;
    p.cacheControlMode = kCacheControlAll;
  }
  p.ctx = context;
  *result = api.cuptiRangeProfilerEnable(reinterpret_cast<CUpti_RangeProfiler_Enable_Params*>(&p));
  if (*result != CUPTI_SUCCESS) return nullptr;
  return std::unique_ptr<RangeProfiler>(new RangeProfiler(api, p.pRangeProfilerObject));
} catch (...) {
  *result = CUPTI_ERROR_OUT_OF_MEMORY;
  return nullptr;
}

RangeProfiler::~RangeProfiler() {
  if (x_started) stop();
  CUpti_RangeProfiler_Disable_Params p{};
  p.structSize = CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE;
  p.pRangeProfilerObject = x_object;
  x_api.cuptiRangeProfilerDisable(&p);
}

CUptiResult RangeProfiler::configure(const RangeConfig& config, RangeMode mode, size_t max_ranges,
                                     std::shared_ptr<DecodedRanges> into, uint16_t levels) noexcept try {
  if (x_started) stop();
  x_config = nullptr;
  // How many ranges a pass may have is said nowhere; users met code 7 above two to three thousand.
  CUptiResult rc = set_config(config, mode, max_ranges, into, levels);
  while (rc == CUPTI_ERROR_INVALID_OPERATION && max_ranges > kFewestRanges)
    rc = set_config(config, mode, max_ranges /= 2, into, levels);
  if (rc == CUPTI_SUCCESS) x_config = &config;
  return rc;
} catch (...) {
  return CUPTI_ERROR_OUT_OF_MEMORY;
}

CUptiResult RangeProfiler::set_config(const RangeConfig& config, RangeMode mode, size_t max_ranges,
                                      std::shared_ptr<DecodedRanges> into, uint16_t levels) {
  CUpti_RangeProfiler_GetCounterDataSize_Params size{};
  size.structSize = CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE;
  size.pRangeProfilerObject = x_object;
  size.pMetricNames = const_cast<const char**>(config.names.data());
  size.numMetrics = config.names.size();
  size.maxNumOfRanges = max_ranges;
  size.maxNumRangeTreeNodes = static_cast<uint32_t>(max_ranges);
  CUptiResult rc = x_api.cuptiRangeProfilerGetCounterDataSize(&size);
  if (rc != CUPTI_SUCCESS) return rc;
  // CUPTI keeps the address of the image that it has: that one goes when another has taken its place. One
  // that is large enough stays where it is.
  if (into->image.capacity() < size.counterDataSize && x_replaced.empty()) x_replaced.swap(into->image);
  into->image.resize(size.counterDataSize);
  std::vector<uint8_t>& image = into->image;
  rc = initialize(image);
  if (rc != CUPTI_SUCCESS) return rc;
  CUpti_RangeProfiler_SetConfig_Params set{};
  set.structSize = CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE;
  set.pRangeProfilerObject = x_object;
  set.configSize = config.group->image.size();
  set.pConfig = config.group->image.data();
  set.counterDataImageSize = image.size();
  set.pCounterDataImage = image.data();
  set.range = mode == RangeMode::kUserRange ? CUPTI_UserRange : CUPTI_AutoRange;
  set.replayMode = mode == RangeMode::kKernelReplay ? CUPTI_KernelReplay : CUPTI_UserReplay;
  set.maxRangesPerPass = max_ranges;
  set.numNestingLevels = levels;
  set.minNestingLevel = 1;
  set.passIndex = 0;
  set.targetNestingLevel = 1;
  rc = x_api.cuptiRangeProfilerSetConfig(&set);
  if (rc != CUPTI_SUCCESS) return rc;
  x_into = std::move(into);
  x_replaced = {};
  x_room = max_ranges;
  return rc;
}

CUptiResult RangeProfiler::initialize(std::vector<uint8_t>& image) noexcept {
  CUpti_RangeProfiler_CounterDataImage_Initialize_Params init{};
  init.structSize = CUpti_RangeProfiler_CounterDataImage_Initialize_Params_STRUCT_SIZE;
  init.pRangeProfilerObject = x_object;
  init.counterDataSize = image.size();
  init.pCounterData = image.data();
  return x_api.cuptiRangeProfilerCounterDataImageInitialize(&init);
}

CUptiResult RangeProfiler::start() noexcept {
  CUpti_RangeProfiler_Start_Params p{};
  p.structSize = CUpti_RangeProfiler_Start_Params_STRUCT_SIZE;
  p.pRangeProfilerObject = x_object;
  const CUptiResult rc = x_api.cuptiRangeProfilerStart(&p);
  x_started = rc == CUPTI_SUCCESS;
  return rc;
}

CUptiResult RangeProfiler::stop(bool* all_passes) noexcept {
  CUpti_RangeProfiler_Stop_Params p{};
  p.structSize = CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE;
  p.pRangeProfilerObject = x_object;
  const CUptiResult rc = x_api.cuptiRangeProfilerStop(&p);
  x_started = false;
  if (all_passes) *all_passes = p.isAllPassSubmitted != 0;
  return rc;
}

CUptiResult RangeProfiler::push(const char* name) noexcept {
  CUpti_RangeProfiler_PushRange_Params p{};
  p.structSize = CUpti_RangeProfiler_PushRange_Params_STRUCT_SIZE;
  p.pRangeProfilerObject = x_object;
  p.pRangeName = name;
  return x_api.cuptiRangeProfilerPushRange(&p);
}

CUptiResult RangeProfiler::pop() noexcept {
  CUpti_RangeProfiler_PopRange_Params p{};
  p.structSize = CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE;
  p.pRangeProfilerObject = x_object;
  return x_api.cuptiRangeProfilerPopRange(&p);
}

CUptiResult RangeProfiler::decode(size_t* dropped) noexcept {
  CUpti_RangeProfiler_DecodeData_Params p{};
  p.structSize = CUpti_RangeProfiler_DecodeData_Params_STRUCT_SIZE;
  p.pRangeProfilerObject = x_object;
  const CUptiResult rc = x_api.cuptiRangeProfilerDecodeData(&p);
  if (dropped) *dropped = p.numOfRangeDropped;
  return rc;
}

}  // namespace cuptiprof
