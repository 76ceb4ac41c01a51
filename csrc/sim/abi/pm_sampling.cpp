// cuptiPmSampling*: the C side of Sampler.
#include <cupti_pmsampling.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "sim/abi/profiler_params.h"
#include "sim/counters/profiler_objects.h"

using namespace sim;

SIM_EXPORT CUptiResult CUPTIAPI cuptiPmSamplingEnable(CUpti_PmSampling_Enable_Params* p) {
  SIM_PARAMS("cuptiPmSamplingEnable", p, CUpti_PmSampling_Enable_Params_STRUCT_SIZE);
  if (!profiler_initialized()) return CUPTI_ERROR_NOT_INITIALIZED;
  if (p->deviceIndex >= Machine::get().devices()) return CUPTI_ERROR_INVALID_PARAMETER;
  if (Machine::get().chip().major < 8) return CUPTI_ERROR_NOT_SUPPORTED;
  auto* sampler = samplers().add(static_cast<uint32_t>(p->deviceIndex), Machine::get().chip());
  if (!sampler) return CUPTI_ERROR_INVALID_OPERATION;
  p->pPmSamplingObject = reinterpret_cast<CUpti_PmSampling_Object*>(sampler);
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiPmSamplingDisable(CUpti_PmSampling_Disable_Params* p) {
  SIM_PARAMS("cuptiPmSamplingDisable", p, CUpti_PmSampling_Disable_Params_STRUCT_SIZE);
  const auto sampler = samplers().take(p->pPmSamplingObject);
  if (!sampler) return CUPTI_ERROR_INVALID_PARAMETER;
  sampler->shut_down();
  return CUPTI_SUCCESS;
}

#define SIM_SAMPLING_CALL(function, Params, call)                   \
  SIM_EXPORT CUptiResult CUPTIAPI function(Params* p) {             \
    SIM_PARAMS(#function, p, Params##_STRUCT_SIZE);                 \
    const auto sampler = samplers().find(p->pPmSamplingObject);     \
    return sampler ? sampler->call : CUPTI_ERROR_INVALID_PARAMETER; \
  }

// CUDA 12.6 has no append mode: its struct ends before it, and a longer one is refused.
SIM_EXPORT CUptiResult CUPTIAPI cuptiPmSamplingSetConfig(CUpti_PmSampling_SetConfig_Params* p) {
  constexpr size_t k126 = offsetof(CUpti_PmSampling_SetConfig_Params, hwBufferAppendMode);
  const bool is_126 = Machine::get().version() == 120600;
  SIM_PARAMS("cuptiPmSamplingSetConfig", p, is_126 ? k126 : CUpti_PmSampling_SetConfig_Params_STRUCT_SIZE);
  if (is_126 && p->structSize != k126) return CUPTI_ERROR_INVALID_PARAMETER;
  CUpti_PmSampling_SetConfig_Params given{};
  std::memcpy(&given, p, std::min(p->structSize, sizeof given));
  const auto sampler = samplers().find(p->pPmSamplingObject);
  return sampler ? sampler->configure(given) : CUPTI_ERROR_INVALID_PARAMETER;
}

SIM_SAMPLING_CALL(cuptiPmSamplingStart, CUpti_PmSampling_Start_Params, start())
SIM_SAMPLING_CALL(cuptiPmSamplingStop, CUpti_PmSampling_Stop_Params, stop())
SIM_SAMPLING_CALL(cuptiPmSamplingDecodeData, CUpti_PmSampling_DecodeData_Params, decode(*p))
SIM_SAMPLING_CALL(cuptiPmSamplingGetCounterDataSize, CUpti_PmSampling_GetCounterDataSize_Params,
                  data_size(*p))
SIM_SAMPLING_CALL(cuptiPmSamplingCounterDataImageInitialize,
                  CUpti_PmSampling_CounterDataImage_Initialize_Params, initialize_data(*p))

SIM_EXPORT CUptiResult CUPTIAPI
cuptiPmSamplingGetCounterDataInfo(CUpti_PmSampling_GetCounterDataInfo_Params* p) {
  SIM_PARAMS("cuptiPmSamplingGetCounterDataInfo", p, CUpti_PmSampling_GetCounterDataInfo_Params_STRUCT_SIZE);
  const CounterData data(p->pCounterDataImage, p->counterDataImageSize);
  if (!data.valid() || data.profiler() != Profiler::kSampling) return CUPTI_ERROR_INVALID_PARAMETER;
  p->numTotalSamples = data.capacity();
  p->numPopulatedSamples = p->numCompletedSamples = data.rows();
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI
cuptiPmSamplingCounterDataGetSampleInfo(CUpti_PmSampling_CounterData_GetSampleInfo_Params* p) {
  SIM_PARAMS("cuptiPmSamplingCounterDataGetSampleInfo", p,
             CUpti_PmSampling_CounterData_GetSampleInfo_Params_STRUCT_SIZE);
  const CounterData data(p->pCounterDataImage, p->counterDataImageSize);
  if (!data.valid() || data.profiler() != Profiler::kSampling || p->sampleIndex >= data.rows())
    return CUPTI_ERROR_INVALID_PARAMETER;
  p->startTimestamp = data.start(p->sampleIndex);
  p->endTimestamp = data.end(p->sampleIndex);
  return CUPTI_SUCCESS;
}
