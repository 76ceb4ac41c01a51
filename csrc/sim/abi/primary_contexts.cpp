// Primary contexts: retained and released; only the last release takes one away, with its modules.
#include "sim/abi/primary_contexts.h"

#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "sim/activity/callbacks.h"
#include "sim/machine/inside.h"
#include "sim/machine/machine.h"
#include "sim/machine/name_memory.h"
#include "sim/machine/stream_captures.h"

namespace sim {
namespace {

std::mutex g_retained_mutex;  // guards the counts
std::map<CUdevice, uint32_t>& retained() {
  static auto* counts = new std::map<CUdevice, uint32_t>;  // never destroyed (Machine::get)
  return *counts;
}

bool exists(CUdevice device) {
  const auto all = Machine::get().contexts();
  return std::any_of(all.begin(), all.end(),
                     [&](const Context* c) { return c->device == static_cast<uint32_t>(device); });
}

bool valid(CUdevice device) {
  return device >= 0 && static_cast<uint32_t>(device) < Machine::get().devices();
}

// What CUDA calls make without being told is retained once, by the runtime.
uint32_t& count_of(CUdevice device) {
  return retained().try_emplace(device, exists(device) ? 1 : 0).first->second;
}

void take_away(CUdevice device) {
  Machine& m = Machine::get();
  Context* c = m.context(static_cast<uint32_t>(device), 0);
  m.wait_until(c->busy_until.load());
  drop_captures(c);
  const auto handle = reinterpret_cast<CUcontext>(c);
  CUpti_ModuleResourceData module{};
  module.moduleId = c->id;
  resource_callback(CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING, handle, nullptr, &module);
  resource_callback(CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING, handle);
  unload_names();
  m.destroy_context(c);
}

template <typename Body>
CUresult announced(CUpti_CallbackId cbid, const char* name, CUdevice device, Body body) {
  CUresult result = CUDA_SUCCESS;
  uint64_t scratch = 0;
  CUpti_CallbackData data{};
  data.functionName = name;
  data.functionParams = &device;  // cuDevicePrimaryCtxRelease_v2_params
  data.functionReturnValue = &result;
  data.correlationData = &scratch;
  data.correlationId = Machine::get().next_correlation.fetch_add(1) + 1;
  data.callbackSite = CUPTI_API_ENTER;
  call_back(CUPTI_CB_DOMAIN_DRIVER_API, cbid, &data);
  result = body();
  data.callbackSite = CUPTI_API_EXIT;
  call_back(CUPTI_CB_DOMAIN_DRIVER_API, cbid, &data);
  return result;
}

}  // namespace

void forget_primary_contexts() {
  const std::lock_guard lock(g_retained_mutex);
  retained().clear();
}

}  // namespace sim

using namespace sim;

SIM_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  const Inside inside;
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  if (!valid(device)) return CUDA_ERROR_INVALID_DEVICE;
  {
    const std::lock_guard lock(g_retained_mutex);
    ++count_of(device);
  }
  *context = reinterpret_cast<CUcontext>(Machine::get().context(static_cast<uint32_t>(device), 0));
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  const Inside inside;
  if (!valid(device)) return CUDA_ERROR_INVALID_DEVICE;
  return announced(CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease_v2",
                   device, [&] {
                     bool last = false;
                     {
                       const std::lock_guard lock(g_retained_mutex);
                       uint32_t& count = count_of(device);
                       if (count == 0) return CUDA_ERROR_INVALID_CONTEXT;
                       last = --count == 0;
                       if (last) retained().erase(device);  // whoever uses it next retains a new one
                     }
                     if (last) take_away(device);
                     return CUDA_SUCCESS;
                   });
}

SIM_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice device) {
  const Inside inside;
  if (!valid(device)) return CUDA_ERROR_INVALID_DEVICE;
  return announced(CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset_v2", device,
                   [&] {
                     if (exists(device)) take_away(device);
                     return CUDA_SUCCESS;
                   });
}
