// The driver functions that a profiler itself calls.
#include <cuda.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "sim/activity/callbacks.h"
#include "sim/activity/records.h"
#include "sim/machine/current_context.h"
#include "sim/machine/inside.h"
#include "sim/machine/machine.h"
#include "sim/machine/stream_captures.h"

namespace sim {
namespace {

bool valid_device(CUdevice device) {
  return device >= 0 && static_cast<uint32_t>(device) < Machine::get().devices();
}

}  // namespace
}  // namespace sim

using namespace sim;

SIM_EXPORT CUresult CUDAAPI cuInit(unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  initialise_cuda();
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult CUDAAPI cuDriverGetVersion(int* version) {
  const Inside inside;
  CUresult result = version ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  uint64_t scratch = 0;
  CUpti_CallbackData data{};
  data.functionName = "cuDriverGetVersion";
  data.functionReturnValue = &result;
  data.correlationData = &scratch;
  auto tell = [&](CUpti_ApiCallbackSite site) {
    data.callbackSite = site;
    call_back(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuDriverGetVersion, &data);
  };
  tell(CUPTI_API_ENTER);
  if (version)
    *version =
        static_cast<int>(Machine::get().version() / 10000 * 1000 + Machine::get().version() / 100 % 100 * 10);
  tell(CUPTI_API_EXIT);
  return result;
}

SIM_EXPORT CUresult CUDAAPI cuDeviceGetCount(int* count) {
  const Inside inside;
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  if (!Machine::get().initialised()) return CUDA_ERROR_NOT_INITIALIZED;
  *count = static_cast<int>(Machine::get().devices());
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
  const Inside inside;
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult CUDAAPI cuDeviceGetName(char* name, int length, CUdevice device) {
  const Inside inside;
  if (!name || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(name, static_cast<size_t>(length), "%s", Machine::get().chip().product);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult CUDAAPI cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = Machine::get().chip().memory_bytes;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  const Inside inside;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  const Chip& c = Machine::get().chip();
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = static_cast<int>(c.major);
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = static_cast<int>(c.minor);
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = static_cast<int>(c.sms);
      break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      *value = static_cast<int>(c.clock_khz);
      break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      *value = static_cast<int>(c.l2_bytes);
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      *value = static_cast<int>(c.shared_per_sm);
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      *value = static_cast<int>(c.warps_per_sm * 32);
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
      *value = static_cast<int>(c.blocks_per_sm);
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
      *value = 65536;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      *value = 49152;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
      *value = 1024;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      *value = 64;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      *value = 2147483647;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      *value = 65535;
      break;
    case CU_DEVICE_ATTRIBUTE_ECC_ENABLED:
      *value = 0;
      break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      *value = 32;
      break;
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
      *value = 1;
      break;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
      *value = static_cast<int>(c.copy_engines);
      break;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;  // not modelled: an invented number would be worse
  }
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult CUDAAPI cuCtxGetCurrent(CUcontext* context) {
  const Inside inside;
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  const CUcontext current = current_context();
  *context = current && Machine::get().find_context(current) ? current : nullptr;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) {
  const Inside inside;
  if (context && !Machine::get().find_context(context)) return CUDA_ERROR_INVALID_CONTEXT;
  replace_context(context);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext context) {
  const Inside inside;
  if (!Machine::get().find_context(context)) return CUDA_ERROR_INVALID_CONTEXT;
  push_context(context);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext* context) {
  const Inside inside;
  const CUcontext top = pop_context();
  if (context && top) *context = top;
  return top ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

SIM_EXPORT CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) {
  const Inside inside;
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  const Context* c = Machine::get().find_context(current_context());
  if (!c) return CUDA_ERROR_INVALID_CONTEXT;
  *device = static_cast<CUdevice>(c->device);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult CUDAAPI cuCtxSynchronize() {
  const Inside inside;
  if (!current_context()) return CUDA_ERROR_INVALID_CONTEXT;
  const Context* c = Machine::get().find_context(current_context());
  if (!c) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  cuptisim_op op{};
  op.size = sizeof op;
  op.kind = CUPTISIM_OP_SYNC_CONTEXT;
  op.domain = CUPTI_CB_DOMAIN_DRIVER_API;
  op.device = c->device;
  op.context = c->id;
  return static_cast<CUresult>(cuptisim_run(&op, 1, nullptr));
}

SIM_EXPORT CUresult CUDAAPI cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  const Inside inside;
  if (!status) return CUDA_ERROR_INVALID_VALUE;
  Machine& m = Machine::get();
  Captured by;
  if (!stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) {
    const Context* c = m.find_context(current_context());
    if (!c) return CUDA_ERROR_INVALID_CONTEXT;
    by = captured(c, kDefaultStream);
  } else {
    const Stream* found = nullptr;
    for (Context* c : m.contexts())
      if ((found = m.find_stream(c, stream))) {
        by = captured(c, found->id);
        break;
      }
    if (!found) return CUDA_ERROR_INVALID_HANDLE;
  }
  *status = by.invalidated     ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
            : by.graph_id != 0 ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                               : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
