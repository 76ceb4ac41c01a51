// cuptiRangeProfiler*: the C side of RangeSession.
#include <cupti_range_profiler.h>

#include <cstring>

#include "sim/abi/profiler_params.h"
#include "sim/counters/counting.h"
#include "sim/counters/profiler_controls.h"
#include "sim/counters/profiler_objects.h"
#include "sim/counters/range_name.h"

using namespace sim;

SIM_EXPORT CUptiResult CUPTIAPI cuptiRangeProfilerEnable(CUpti_RangeProfiler_Enable_Params* p) {
  SIM_PARAMS("cuptiRangeProfilerEnable", p, CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE);
  if (!profiler_initialized()) return CUPTI_ERROR_NOT_INITIALIZED;
  const bool has_cache = p->structSize >= kEnableParamsWithCache;
  if (has_cache && Machine::get().version() < kFirstWithControls) return CUPTI_ERROR_INVALID_PARAMETER;
  uint32_t cache = 0;
  if (has_cache)
    std::memcpy(&cache, reinterpret_cast<const char*>(p) + kEnableParamsWithCache - sizeof cache,
                sizeof cache);
  if (cache > kLastCacheMode) return CUPTI_ERROR_INVALID_PARAMETER;
  Context* context = Machine::get().find_context(p->ctx);
  if (!context) return CUPTI_ERROR_INVALID_PARAMETER;
  auto* session = range_sessions().add(context, *context, chip_of_device(context->device));
  if (!session) return CUPTI_ERROR_INVALID_OPERATION;
  g_range_profilers.fetch_add(1);
  note_cache_control(cache);
  p->pRangeProfilerObject = reinterpret_cast<CUpti_RangeProfiler_Object*>(session);
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiRangeProfilerDisable(CUpti_RangeProfiler_Disable_Params* p) {
  SIM_PARAMS("cuptiRangeProfilerDisable", p, CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE);
  const auto session = range_sessions().take(p->pRangeProfilerObject);
  if (!session) return CUPTI_ERROR_INVALID_PARAMETER;
  session->shut_down();
  g_range_profilers.fetch_sub(1);
  return CUPTI_SUCCESS;
}

// A call on an object: found, or a wrong parameter.
#define SIM_RANGE_CALL(function, Params, call)                           \
  SIM_EXPORT CUptiResult CUPTIAPI function(Params* p) {                  \
    SIM_PARAMS(#function, p, Params##_STRUCT_SIZE);                      \
    const auto session = range_sessions().find(p->pRangeProfilerObject); \
    return session ? session->call : CUPTI_ERROR_INVALID_PARAMETER;      \
  }

SIM_RANGE_CALL(cuptiRangeProfilerSetConfig, CUpti_RangeProfiler_SetConfig_Params, configure(*p))
SIM_RANGE_CALL(cuptiRangeProfilerStart, CUpti_RangeProfiler_Start_Params, start())
SIM_RANGE_CALL(cuptiRangeProfilerStop, CUpti_RangeProfiler_Stop_Params, stop(*p))
SIM_RANGE_CALL(cuptiRangeProfilerPushRange, CUpti_RangeProfiler_PushRange_Params, push(p->pRangeName))
SIM_RANGE_CALL(cuptiRangeProfilerPopRange, CUpti_RangeProfiler_PopRange_Params, pop())
SIM_RANGE_CALL(cuptiRangeProfilerDecodeData, CUpti_RangeProfiler_DecodeData_Params,
               decode(p->numOfRangeDropped))
SIM_RANGE_CALL(cuptiRangeProfilerGetCounterDataSize, CUpti_RangeProfiler_GetCounterDataSize_Params,
               data_size(*p))
SIM_RANGE_CALL(cuptiRangeProfilerCounterDataImageInitialize,
               CUpti_RangeProfiler_CounterDataImage_Initialize_Params, initialize_data(*p))

SIM_EXPORT CUptiResult CUPTIAPI
cuptiRangeProfilerGetCounterDataInfo(CUpti_RangeProfiler_GetCounterDataInfo_Params* p) {
  SIM_PARAMS("cuptiRangeProfilerGetCounterDataInfo", p,
             CUpti_RangeProfiler_GetCounterDataInfo_Params_STRUCT_SIZE);
  const CounterData data(p->pCounterDataImage, p->counterDataImageSize);
  if (!data.valid()) return CUPTI_ERROR_INVALID_PARAMETER;
  p->numTotalRanges = data.rows();
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI
cuptiRangeProfilerCounterDataGetRangeInfo(CUpti_RangeProfiler_CounterData_GetRangeInfo_Params* p) {
  SIM_PARAMS("cuptiRangeProfilerCounterDataGetRangeInfo", p,
             CUpti_RangeProfiler_CounterData_GetRangeInfo_Params_STRUCT_SIZE);
  const CounterData data(p->pCounterDataImage, p->counterDataImageSize);
  if (!data.valid() || p->rangeIndex >= data.rows()) return CUPTI_ERROR_INVALID_PARAMETER;
  p->rangeName = kept_text(joined_range_name(data.name(p->rangeIndex), p->rangeDelimiter));
  return CUPTI_SUCCESS;
}
