#include "counters/preflight.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "base/error.h"
#include "counters/range/range_profiler.h"
#include "cupti/call.h"
#include "cupti/captures.h"

namespace cuptiprof {
namespace {

// DCGM and the like use the counters in turns: one of them may be over soon.
constexpr std::chrono::milliseconds kFirstWait{10}, kLastWait{160};

template <class Attempt>
CUptiResult with_patience(Attempt attempt) {
  CUptiResult rc = attempt();
  for (auto wait = kFirstWait; rc == CUPTI_ERROR_HARDWARE_BUSY && wait <= kLastWait; wait *= 2) {
    std::this_thread::sleep_for(wait);
    rc = attempt();
  }
  return rc;
}

struct Refusal {
  CUptiResult code;
  bool has_field;  // CUPTI says why; else only that
};

std::optional<Refusal> refusal(const Api& api, uint32_t device, bool sampling) {
  if (!api.cuptiProfilerDeviceSupported) return std::nullopt;
  CUpti_Profiler_DeviceSupported_Params p{};
  p.structSize = CUpti_Profiler_DeviceSupported_Params_STRUCT_SIZE;
  p.cuDevice = static_cast<CUdevice>(device);
  p.api = sampling ? CUPTI_PROFILER_PM_SAMPLING : CUPTI_PROFILER_RANGE_PROFILING;
  if (api.cuptiProfilerDeviceSupported(&p) != CUPTI_SUCCESS) return std::nullopt;
  const auto says_no = [](CUpti_Profiler_Support_Level level) {
    return level == CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED ||
           level == CUPTI_PROFILER_CONFIGURATION_DISABLED;
  };
  if (!says_no(p.isSupported)) return std::nullopt;
  if (says_no(p.vGpu))
    return Refusal{p.vGpu == CUPTI_PROFILER_CONFIGURATION_DISABLED
                       ? CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES
                       : CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED,
                   true};
  if (says_no(p.confidentialCompute)) return Refusal{CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED, true};
  if (says_no(p.cmp)) return Refusal{CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED, true};
  if (says_no(p.sli)) return Refusal{CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED, true};
  if (says_no(p.wsl)) return Refusal{CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED, true};
  return Refusal{CUPTI_ERROR_NOT_SUPPORTED, says_no(p.architecture)};
}

[[noreturn]] void refuse(const Refusal& r, uint32_t device, bool sampling) {
  const ErrorText text = error_text(r.code);
  std::string why = *text.what ? text.what : result_name(r.code);
  std::string hint = text.hint;
  if (r.code == CUPTI_ERROR_NOT_SUPPORTED && r.has_field) {
    why = sampling ? "PM sampling needs compute capability 8.0 or newer"
                   : "counters need compute capability 7.0 or newer";
    hint = sampling ? "use another strategy" : "collect without counters";
  }
  throw Error::from_call("no hardware counters on device " + std::to_string(device) + ": " + why +
                             " (cuptiProfilerDeviceSupported)",
                         hint, r.code, result_name(r.code), "cuptiProfilerDeviceSupported");
}

// A profiler is enabled and taken off again; nothing is configured or started.
CUptiResult try_ranges(const Api& api, CUcontext context) {
  CUptiResult rc = CUPTI_SUCCESS;
  RangeProfiler::enable(api, context, &rc);
  return rc;
}

CUptiResult try_sampling(const Api& api, uint32_t device) {
  CUpti_PmSampling_Enable_Params enable{};
  enable.structSize = CUpti_PmSampling_Enable_Params_STRUCT_SIZE;
  enable.deviceIndex = device;
  const CUptiResult rc = api.cuptiPmSamplingEnable(&enable);
  if (rc != CUPTI_SUCCESS) return rc;
  CUpti_PmSampling_Disable_Params disable{};
  disable.structSize = CUpti_PmSampling_Disable_Params_STRUCT_SIZE;
  disable.pPmSamplingObject = enable.pPmSamplingObject;
  return api.cuptiPmSamplingDisable(&disable);
}

void must_work(const Api& api, CUptiResult rc, uint32_t device, bool sampling) {
  // A context may have ended meanwhile.
  if (rc == CUPTI_ERROR_INVALID_CONTEXT || rc == CUPTI_ERROR_INVALID_PARAMETER) return;
  if (rc == CUPTI_ERROR_UNKNOWN || rc == CUPTI_ERROR_NOT_SUPPORTED)
    if (const auto r = refusal(api, device, sampling); r && r->has_field) refuse(*r, device, sampling);
  check(api, rc, sampling ? "cuptiPmSamplingEnable" : "cuptiRangeProfilerEnable",
        "device " + std::to_string(device));
}

}  // namespace

std::vector<CUcontext> known_contexts(const Api& api, std::vector<CUcontext> (*used)()) {
  std::vector<CUcontext> out;
  CUcontext current = nullptr;
  if (api.cuCtxGetCurrent && api.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current) out.push_back(current);
  if (used)
    for (CUcontext c : used())
      if (c && c != current) out.push_back(c);
  return out;
}

void preflight(const Api& api, const CounterOptions& options) {
  const bool sampling = options.strategy == Strategy::kSample;
  std::vector<uint32_t> tried;  // devices: each is asked once
  const auto is_new = [&](uint32_t device) {
    if (std::find(tried.begin(), tried.end(), device) != tried.end()) return false;
    tried.push_back(device);
    return true;
  };
  // Enabling may wait for the GPU, which would break a capture that is open.
  if (const NoCapture none; none && !Captures::is_conflicting(api)) {
    for (CUcontext context : known_contexts(api, options.contexts)) {
      uint32_t device = 0;
      if (!api.cuptiGetDeviceId || api.cuptiGetDeviceId(context, &device) != CUPTI_SUCCESS || !is_new(device))
        continue;
      const CUptiResult rc =
          with_patience([&] { return sampling ? try_sampling(api, device) : try_ranges(api, context); });
      must_work(api, rc, device, sampling);
    }
  }
  if (!tried.empty()) return;
  const uint32_t device = options.devices.empty() ? 0 : options.devices.front();
  if (const auto r = refusal(api, device, sampling)) refuse(*r, device, sampling);
  // Sampling needs no context.
  if (!sampling || !api.cuptiPmSamplingEnable) return;
  const CUptiResult rc = with_patience([&] { return try_sampling(api, device); });
  if (rc != CUPTI_ERROR_INVALID_PARAMETER) must_work(api, rc, device, sampling);
}

}  // namespace cuptiprof
