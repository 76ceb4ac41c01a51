#include "base/error.h"
#include "cupti/call.h"

namespace cuptiprof {
namespace {

struct Entry {
  int code;
  const char* name;
  const char* what;
  const char* hint;
};

// Names from cupti_result.h (CUDA 13.0); words ours.
constexpr Entry kEntries[] = {
    {0, "CUPTI_SUCCESS", "", ""},
    {1, "CUPTI_ERROR_INVALID_PARAMETER", "an argument was not accepted", "this is a bug in cuptiprof or a library it does not know; run `cuptiprof doctor` and report it"},
    {2, "CUPTI_ERROR_INVALID_DEVICE", "", ""},
    {3, "CUPTI_ERROR_INVALID_CONTEXT", "", ""},
    {4, "CUPTI_ERROR_INVALID_EVENT_DOMAIN_ID", "", ""},
    {5, "CUPTI_ERROR_INVALID_EVENT_ID", "", ""},
    {6, "CUPTI_ERROR_INVALID_EVENT_NAME", "", ""},
    {7, "CUPTI_ERROR_INVALID_OPERATION", "", ""},
    {8, "CUPTI_ERROR_OUT_OF_MEMORY", "out of memory", "give a smaller budget="},
    {9, "CUPTI_ERROR_HARDWARE", "", ""},
    {10, "CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT", "", ""},
    {11, "CUPTI_ERROR_API_NOT_IMPLEMENTED", "", ""},
    {12, "CUPTI_ERROR_MAX_LIMIT_REACHED", "", ""},
    {13, "CUPTI_ERROR_NOT_READY", "", ""},
    {14, "CUPTI_ERROR_NOT_COMPATIBLE", "", ""},
    {15, "CUPTI_ERROR_NOT_INITIALIZED", "CUPTI could not be initialised", "check the driver with `nvidia-smi` and run `cuptiprof doctor`"},
    {16, "CUPTI_ERROR_INVALID_METRIC_ID", "", ""},
    {17, "CUPTI_ERROR_INVALID_METRIC_NAME", "", ""},
    {18, "CUPTI_ERROR_QUEUE_EMPTY", "", ""},
    {19, "CUPTI_ERROR_INVALID_HANDLE", "", ""},
    {20, "CUPTI_ERROR_INVALID_STREAM", "", ""},
    {21, "CUPTI_ERROR_INVALID_KIND", "", ""},
    {22, "CUPTI_ERROR_INVALID_EVENT_VALUE", "", ""},
    {23, "CUPTI_ERROR_DISABLED", "", ""},
    {24, "CUPTI_ERROR_INVALID_MODULE", "", ""},
    {25, "CUPTI_ERROR_INVALID_METRIC_VALUE", "", ""},
    {26, "CUPTI_ERROR_HARDWARE_BUSY", "the hardware counters are in use by another tool", "stop DCGM profiling (`dcgmi profpause`) or the other profiler"},
    {27, "CUPTI_ERROR_NOT_SUPPORTED", "this system or configuration is not supported", "run `cuptiprof doctor`; WSL, vGPU and MIG support less"},
    {28, "CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED", "", ""},
    {29, "CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_DEVICE", "", ""},
    {30, "CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_NON_P2P_DEVICES", "", ""},
    {31, "CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_WITH_MPS", "", ""},
    {32, "CUPTI_ERROR_CDP_TRACING_NOT_SUPPORTED", "device-launched kernels cannot be traced here", ""},
    {33, "CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED", "profiling is switched off on this virtual GPU", "ask the administrator to enable profiling for the vGPU profile"},
    {34, "CUPTI_ERROR_CUDA_COMPILER_NOT_COMPATIBLE", "", ""},
    {35, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", "the driver allows profiling to administrators only", "load the driver with NVreg_RestrictProfilingToAdminUsers=0 (then reboot), or run with CAP_SYS_ADMIN (docker run --cap-add=SYS_ADMIN)"},
    {36, "CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED", "the old profiler API is in use in this process", "do not mix with tools that use cuptiProfilerInitialize"},
    {37, "CUPTI_ERROR_OPENACC_UNDEFINED_ROUTINE", "", ""},
    {38, "CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED", "", ""},
    {39, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED", "another tool in this process holds CUPTI", "stop torch.profiler, Proton, nsys or ncu first: up to CUDA 13.1 one tool at a time can subscribe"},
    {40, "CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES", "this virtual GPU does not allow profiling", "the hypervisor must grant profiling privileges to the VM"},
    {41, "CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED", "confidential computing forbids profiling", "start the VM with the developer tools mode of confidential computing"},
    {42, "CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED", "mining GPUs (CMP) cannot be profiled", ""},
    {43, "CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED", "this call does not work on a MIG instance", "profile on the whole GPU, or collect without counters"},
    {44, "CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED", "SLI configurations cannot be profiled", "switch SLI off"},
    {45, "CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED", "this call does not work under WSL", "run on Linux itself"},
    {46, "CUPTI_ERROR_INVALID_CHIP_NAME", "", ""},
    {999, "CUPTI_ERROR_UNKNOWN", "CUPTI does not work here", "there may be no NVIDIA driver; run `cuptiprof doctor`"},
    {0, "CUPTI_ERROR_FORCE_INT", "", ""},
};

const Entry* find(int code) {
  for (const Entry& e : kEntries)
    if (e.code == code) return &e;
  return nullptr;
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

void check(const Api& api, CUptiResult rc, const char* call, const std::string& context) {
  if (rc == CUPTI_SUCCESS) return;
  const ErrorText text = error_text(rc);
  std::string message = std::string(call) + " returned " + std::to_string(rc) + " (" + result_name(rc) + ")";
  if (*text.what) message += std::string(": ") + text.what;
  if (!context.empty()) message += " [" + context + "]";
  std::string hint = text.hint;
  if (rc == CUPTI_ERROR_UNKNOWN && api.driver_version == 0 && !api.simulated)
    hint = "there is no NVIDIA driver here; without a GPU use device=\"sim\"";
  throw Error::from_call(message, hint, rc, result_name(rc), call);
}

}  // namespace cuptiprof
