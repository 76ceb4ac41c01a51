#include "collect/setup/kinds.h"

#include <cupti_driver_cbid.h>
#include <cupti_runtime_cbid.h>

#include "cupti/subscriber_calls.h"

namespace cuptiprof {

CUptiResult enable_kind(const SubscriberCalls& calls, CUpti_ActivityKind kind, bool all_calls) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_DEVICE:
    case CUPTI_ACTIVITY_KIND_CONTEXT:
    case CUPTI_ACTIVITY_KIND_STREAM:
      // CUPTI writes their records when they come to be, which in a program that uses CUDA already was before
      // us.
      if (calls.enable_and_dump(kind) == CUPTI_SUCCESS) return CUPTI_SUCCESS;
      return calls.enable(kind);
    case CUPTI_ACTIVITY_KIND_RUNTIME: {
      const CUptiResult rc = calls.enable(kind);
      if (rc == CUPTI_SUCCESS && !all_calls)
        for (const CUpti_CallbackId cbid :
             {CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020, CUPTI_RUNTIME_TRACE_CBID_cudaEventQuery_v3020})
          calls.leave_out_runtime_call(cbid);
      return rc;
    }
    case CUPTI_ACTIVITY_KIND_DRIVER: {
      const CUptiResult rc = calls.enable(kind);
      if (rc == CUPTI_SUCCESS && !all_calls)
        for (const CUpti_CallbackId cbid :
             {CUPTI_DRIVER_TRACE_CBID_cuKernelGetAttribute,
              CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxGetState, CUPTI_DRIVER_TRACE_CBID_cuCtxGetCurrent,
              CUPTI_DRIVER_TRACE_CBID_cuEventQuery})
          calls.leave_out_driver_call(cbid);
      return rc;
    }
    default:
      return calls.enable(kind);
  }
}

}  // namespace cuptiprof
