#include "collect/kinds.h"

#include <cupti_driver_cbid.h>
#include <cupti_runtime_cbid.h>

#include "cupti/api.h"

namespace cuptiprof {

CUptiResult enable_kind(const Api& api, CUpti_ActivityKind kind, bool all_calls) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_DEVICE:
    case CUPTI_ACTIVITY_KIND_CONTEXT:
    case CUPTI_ACTIVITY_KIND_STREAM:
      // CUPTI writes their records when they come to be, which in a program that uses CUDA already was before
      // us.
      if (api.cuptiActivityEnableAndDump && api.cuptiActivityEnableAndDump(kind) == CUPTI_SUCCESS)
        return CUPTI_SUCCESS;
      return api.cuptiActivityEnable(kind);
    case CUPTI_ACTIVITY_KIND_RUNTIME: {
      const CUptiResult rc = api.cuptiActivityEnable(kind);
      if (rc == CUPTI_SUCCESS && !all_calls && api.cuptiActivityEnableRuntimeApi)
        for (const CUpti_CallbackId cbid :
             {CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020, CUPTI_RUNTIME_TRACE_CBID_cudaEventQuery_v3020})
          api.cuptiActivityEnableRuntimeApi(cbid, 0);
      return rc;
    }
    case CUPTI_ACTIVITY_KIND_DRIVER: {
      const CUptiResult rc = api.cuptiActivityEnable(kind);
      if (rc == CUPTI_SUCCESS && !all_calls && api.cuptiActivityEnableDriverApi)
        for (const CUpti_CallbackId cbid :
             {CUPTI_DRIVER_TRACE_CBID_cuKernelGetAttribute,
              CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxGetState, CUPTI_DRIVER_TRACE_CBID_cuCtxGetCurrent,
              CUPTI_DRIVER_TRACE_CBID_cuEventQuery})
          api.cuptiActivityEnableDriverApi(cbid, 0);
      return rc;
    }
    default:
      return api.cuptiActivityEnable(kind);
  }
}

}  // namespace cuptiprof
