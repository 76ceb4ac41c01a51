// The driver functions that a profiler itself calls.
#include <cuda.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "machine.h"

using namespace sim;

namespace {
thread_local std::vector<CUcontext> t_current;
}

SIM_EXPORT CUresult CUDAAPI cuInit(unsigned) { return CUDA_SUCCESS; }

SIM_EXPORT CUresult CUDAAPI cuDriverGetVersion(int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult CUDAAPI cuDeviceGetCount(int* count) {
  *count = static_cast<int>(Machine::get().devices());
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
  if (ordinal < 0 || ordinal >= static_cast<int>(Machine::get().devices())) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult CUDAAPI cuDeviceGetName(char* name, int length, CUdevice) {
  std::snprintf(name, static_cast<size_t>(std::max(length, 0)), "%s", Machine::get().chip().product);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext context) {
  if (!Machine::get().find_context(context)) return CUDA_ERROR_INVALID_CONTEXT;
  t_current.push_back(context);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext* context) {
  if (t_current.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context) *context = t_current.back();
  t_current.pop_back();
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult CUDAAPI cuCtxSynchronize() {
  if (t_current.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  Context* c = Machine::get().find_context(t_current.back());
  if (!c) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  cuptisim_op op{};
  op.size = sizeof op;
  op.kind = CUPTISIM_OP_SYNC_CONTEXT;
  op.domain = CUPTI_CB_DOMAIN_DRIVER_API;
  op.device = c->device;
  op.context = c->id;
  return static_cast<CUresult>(cuptisim_run(&op, 1, nullptr));
}
