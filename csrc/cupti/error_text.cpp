#include "base/error.h"
#include "cupti/call.h"

namespace cuptiprof {
namespace {

constexpr int kSharesCupti = 130300;  // allowMultipleSubscribers

struct Entry {
  int code;
  const char* name;
  const char* what;
  const char* hint;
};

// Names from cupti_result.h (CUDA 13.0); words ours.
#define CP_CODE(code) code, #code

constexpr Entry kEntries[] = {
    {CP_CODE(CUPTI_SUCCESS), "", ""},
    {CP_CODE(CUPTI_ERROR_INVALID_PARAMETER), "an argument was not accepted",
     "this is a bug in cuptiprof or a library it does not know; run `cuptiprof doctor` and report it"},
    {CP_CODE(CUPTI_ERROR_INVALID_DEVICE), "", ""},
    {CP_CODE(CUPTI_ERROR_INVALID_CONTEXT), "", ""},
    {CP_CODE(CUPTI_ERROR_INVALID_EVENT_DOMAIN_ID), "", ""},
    {CP_CODE(CUPTI_ERROR_INVALID_EVENT_ID), "", ""},
    {CP_CODE(CUPTI_ERROR_INVALID_EVENT_NAME), "", ""},
    {CP_CODE(CUPTI_ERROR_INVALID_OPERATION), "", ""},
    {CP_CODE(CUPTI_ERROR_OUT_OF_MEMORY), "out of memory", "give a smaller budget="},
    {CP_CODE(CUPTI_ERROR_HARDWARE), "", ""},
    {CP_CODE(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT), "", ""},
    {CP_CODE(CUPTI_ERROR_API_NOT_IMPLEMENTED), "", ""},
    {CP_CODE(CUPTI_ERROR_MAX_LIMIT_REACHED), "", ""},
    {CP_CODE(CUPTI_ERROR_NOT_READY), "", ""},
    {CP_CODE(CUPTI_ERROR_NOT_COMPATIBLE), "", ""},
    {CP_CODE(CUPTI_ERROR_NOT_INITIALIZED), "CUPTI could not be initialised",
     "check the driver with `nvidia-smi` and run `cuptiprof doctor`"},
    {CP_CODE(CUPTI_ERROR_INVALID_METRIC_ID), "", ""},
    {CP_CODE(CUPTI_ERROR_INVALID_METRIC_NAME), "", ""},
    {CP_CODE(CUPTI_ERROR_QUEUE_EMPTY), "", ""},
    {CP_CODE(CUPTI_ERROR_INVALID_HANDLE), "", ""},
    {CP_CODE(CUPTI_ERROR_INVALID_STREAM), "", ""},
    {CP_CODE(CUPTI_ERROR_INVALID_KIND), "", ""},
    {CP_CODE(CUPTI_ERROR_INVALID_EVENT_VALUE), "", ""},
    {CP_CODE(CUPTI_ERROR_DISABLED), "", ""},
    {CP_CODE(CUPTI_ERROR_INVALID_MODULE), "", ""},
    {CP_CODE(CUPTI_ERROR_INVALID_METRIC_VALUE), "", ""},
    {CP_CODE(CUPTI_ERROR_HARDWARE_BUSY), "the hardware counters are in use by another tool",
     "stop DCGM profiling (`dcgmi profile --pause`, and --resume after) or the other profiler (ncu, nsys)"},
    {CP_CODE(CUPTI_ERROR_NOT_SUPPORTED), "this system or configuration is not supported",
     "run `cuptiprof doctor`; WSL, vGPU and MIG support less"},
    {CP_CODE(CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED), "", ""},
    {CP_CODE(CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_DEVICE), "", ""},
    {CP_CODE(CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_NON_P2P_DEVICES), "", ""},
    {CP_CODE(CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_WITH_MPS), "", ""},
    {CP_CODE(CUPTI_ERROR_CDP_TRACING_NOT_SUPPORTED), "device-launched kernels cannot be traced here",
     "only kernels that the host launches are recorded"},
    {CP_CODE(CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED), "profiling is switched off on this virtual GPU",
     "ask the administrator to enable profiling for the vGPU profile"},
    {CP_CODE(CUPTI_ERROR_CUDA_COMPILER_NOT_COMPATIBLE), "", ""},
    {CP_CODE(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES), "the driver allows profiling to administrators only",
     "load the driver with NVreg_RestrictProfilingToAdminUsers=0 (then reboot), or run with CAP_SYS_ADMIN "
     "(docker run --cap-add=SYS_ADMIN)"},
    {CP_CODE(CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED), "the old profiler API is in use in this process",
     "do not mix with tools that use cuptiProfilerInitialize"},
    {CP_CODE(CUPTI_ERROR_OPENACC_UNDEFINED_ROUTINE), "", ""},
    {CP_CODE(CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED), "", ""},
    {CP_CODE(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED), "another tool in this process holds CUPTI",
     "torch.profiler, once used, keeps it until the process ends: profile in a process that did not use it, "
     "or set "
     "TEARDOWN_CUPTI=1, with which it lets go; leave out nsys, ncu and Proton"},
    {CP_CODE(CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES),
     "this virtual GPU does not allow profiling", "the hypervisor must grant profiling privileges to the VM"},
    {CP_CODE(CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED), "confidential computing forbids profiling",
     "start the VM with the developer tools mode of confidential computing"},
    {CP_CODE(CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED), "mining GPUs (CMP) cannot be profiled",
     "use another GPU"},
    {CP_CODE(CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED), "this call does not work on a MIG instance",
     "profile on the whole GPU, or collect without counters"},
    {CP_CODE(CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED), "SLI configurations cannot be profiled",
     "switch SLI off"},
    {CP_CODE(CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED), "this call does not work under WSL",
     "run on Linux itself"},
    {CP_CODE(CUPTI_ERROR_INVALID_CHIP_NAME), "", ""},
    {CP_CODE(CUPTI_ERROR_UNKNOWN), "CUPTI does not work here",
     "there may be no NVIDIA driver; run `cuptiprof doctor`"},
};
#undef CP_CODE

const Entry* find(int code) {
  for (const Entry& e : kEntries)
    if (e.code == code) return &e;
  return nullptr;
}

bool is_of_counters(const std::string& call) {
  return call.rfind("cuptiRangeProfiler", 0) == 0 || call.rfind("cuptiPmSampling", 0) == 0 ||
         call.rfind("cuptiProfiler", 0) == 0;
}

}  // namespace

ErrorText error_text(int code) {
  const Entry* e = find(code);
  return e ? ErrorText{e->what, e->hint} : ErrorText{"", ""};
}

const char* result_name(int code) {
  const Entry* e = find(code);
  return e ? e->name : "unknown CUPTI result";
}

std::string subscriber_name(const Api& api) {
  if (!api.cuptiSubscribe_v2) return {};
  char holder[2 * CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN] = "";
  CUpti_SubscriberParams params = {};
  params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
  params.subscriberName = "cuptiprof";
  params.oldSubscriberName = holder;
  params.oldSubscriberSize = sizeof holder - 1;
  CUpti_SubscriberHandle handle = nullptr;
  const auto nothing = [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {};
  if (api.cuptiSubscribe_v2(&handle, nothing, nullptr, &params) == CUPTI_SUCCESS) {
    api.cuptiUnsubscribe(handle);
    return {};
  }
  return holder;
}

void check(const Api& api, CUptiResult rc, const char* call, const std::string& context) {
  if (rc == CUPTI_SUCCESS) return;
  const ErrorText text = error_text(rc);
  std::string message = std::string(call) + " returned " + std::to_string(rc) + " (" + result_name(rc) + ")";
  if (*text.what) message += std::string(": ") + text.what;
  if (rc == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
    if (const std::string holder = subscriber_name(api); !holder.empty())
      message += " (it calls itself \"" + holder + "\")";
  }
  if (!context.empty()) message += " [" + context + "]";
  std::string hint = text.hint;
  if (rc == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
    // 13.3 lets several tools in where each asks for it: we did, the other one did not, or the driver cannot.
    if (api.version < kSharesCupti) hint += "; up to CUDA 13.2 one tool at a time can subscribe to it";
  }
  if (rc == CUPTI_ERROR_UNKNOWN && api.driver_version == 0 && !api.simulated)
    hint = "there is no NVIDIA driver here; without a GPU use device=\"sim\"";
  else if (rc == CUPTI_ERROR_UNKNOWN && is_of_counters(call))
    hint =
        "another profiler or DCGM may hold the counters (`dcgmi profile --pause`), or the driver allows them "
        "to "
        "administrators only (NVreg_RestrictProfilingToAdminUsers=0, or docker run --cap-add=SYS_ADMIN); "
        "`cuptiprof doctor` says what it finds";
  throw Error::from_call(message, hint, rc, result_name(rc), call);
}

}  // namespace cuptiprof
