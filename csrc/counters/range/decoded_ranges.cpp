#include "counters/range/decoded_ranges.h"

#include <cupti_range_profiler.h>

namespace cuptiprof {

size_t ranges_in(const Api& api, const std::vector<uint8_t>& image) noexcept {
  CUpti_RangeProfiler_GetCounterDataInfo_Params p{};
  p.structSize = CUpti_RangeProfiler_GetCounterDataInfo_Params_STRUCT_SIZE;
  p.pCounterDataImage = image.data();
  p.counterDataImageSize = image.size();
  return api.cuptiRangeProfilerGetCounterDataInfo(&p) == CUPTI_SUCCESS ? p.numTotalRanges : 0;
}

std::string name_of_range(const Api& api, const std::vector<uint8_t>& image, size_t index) {
  CUpti_RangeProfiler_CounterData_GetRangeInfo_Params p{};
  p.structSize = CUpti_RangeProfiler_CounterData_GetRangeInfo_Params_STRUCT_SIZE;
  p.pCounterDataImage = image.data();
  p.counterDataImageSize = image.size();
  p.rangeIndex = index;
  p.rangeDelimiter = "/";
  if (api.cuptiRangeProfilerCounterDataGetRangeInfo(&p) != CUPTI_SUCCESS || !p.rangeName) return {};
  return p.rangeName;
}

}  // namespace cuptiprof
