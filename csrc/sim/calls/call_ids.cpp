#include "sim/calls/call_ids.h"

#include <cupti_driver_cbid.h>
#include <cupti_runtime_cbid.h>

#include <algorithm>

#include "sim/calls/graphs.h"
#include "sim/machine/name_memory.h"

namespace sim {
namespace {

#define RT(name) CUPTI_RUNTIME_TRACE_CBID_##name
#define DR(name) CUPTI_DRIVER_TRACE_CBID_##name

CallIds ids_of_added_node(const cuptisim_op& op) {
  switch (op.kind) {
    case CUPTISIM_OP_KERNEL:
      return {RT(cudaGraphAddKernelNode_v10000), DR(cuGraphAddKernelNode_v2)};
    case CUPTISIM_OP_MEMSET:
      return {RT(cudaGraphAddMemsetNode_v10000), DR(cuGraphAddMemsetNode)};
    default:
      return {RT(cudaGraphAddMemcpyNode_v10000), DR(cuGraphAddMemcpyNode)};
  }
}

CallIds usual_ids(const cuptisim_op& op) {
  const bool async = (op.flags & CUPTISIM_ASYNC) != 0;
  if (op.flags & CUPTISIM_ADD_NODE) return ids_of_added_node(op);
  switch (op.kind) {
    case CUPTISIM_OP_KERNEL:
      return {RT(cudaLaunchKernel_v7000), DR(cuLaunchKernel)};
    case CUPTISIM_OP_MEMCPY:
      return async ? CallIds{RT(cudaMemcpyAsync_v3020), DR(cuMemcpyAsync)}
                   : CallIds{RT(cudaMemcpy_v3020), DR(cuMemcpy)};
    case CUPTISIM_OP_MEMCPY_PEER:
      return async ? CallIds{RT(cudaMemcpyPeerAsync_v4000), DR(cuMemcpyPeerAsync)}
                   : CallIds{RT(cudaMemcpyPeer_v4000), DR(cuMemcpyPeer)};
    case CUPTISIM_OP_MEMSET:
      return async ? CallIds{RT(cudaMemsetAsync_v3020), DR(cuMemsetD8Async)}
                   : CallIds{RT(cudaMemset_v3020), DR(cuMemsetD8_v2)};
    case CUPTISIM_OP_SYNC_STREAM:
      return {RT(cudaStreamSynchronize_v3020), DR(cuStreamSynchronize)};
    case CUPTISIM_OP_SYNC_CONTEXT:
      return {RT(cudaDeviceSynchronize_v3020), DR(cuCtxSynchronize)};
    case CUPTISIM_OP_SYNC_EVENT:
      return {RT(cudaEventSynchronize_v3020), DR(cuEventSynchronize)};
    case CUPTISIM_OP_STREAM_WAIT_EVENT:
      return {RT(cudaStreamWaitEvent_v3020), DR(cuStreamWaitEvent)};
    case CUPTISIM_OP_EVENT_RECORD:
      return {RT(cudaEventRecord_v3020), DR(cuEventRecord)};
    case CUPTISIM_OP_ALLOC:
      return async ? CallIds{RT(cudaMallocAsync_v11020), DR(cuMemAllocAsync)}
                   : CallIds{RT(cudaMalloc_v3020), DR(cuMemAlloc_v2)};
    case CUPTISIM_OP_FREE:
      return async ? CallIds{RT(cudaFreeAsync_v11020), DR(cuMemFreeAsync)}
                   : CallIds{RT(cudaFree_v3020), DR(cuMemFree_v2)};
    case CUPTISIM_OP_STREAM_CREATE:
      return {RT(cudaStreamCreateWithPriority_v5050), DR(cuStreamCreateWithPriority)};
    case CUPTISIM_OP_STREAM_DESTROY:
      return {RT(cudaStreamDestroy_v5050), DR(cuStreamDestroy_v2)};
    case CUPTISIM_OP_CONTEXT_CREATE:
      return {RT(cudaSetDevice_v3020), DR(cuCtxCreate_v2)};
    case CUPTISIM_OP_CONTEXT_DESTROY:
      return {RT(cudaDeviceReset_v3020), DR(cuCtxDestroy_v2)};
    case CUPTISIM_OP_GRAPH_BEGIN_CAPTURE:
      return {RT(cudaStreamBeginCapture_v10000), DR(cuStreamBeginCapture_v2)};
    case CUPTISIM_OP_GRAPH_END_CAPTURE:
      return {RT(cudaStreamEndCapture_v10000), DR(cuStreamEndCapture)};
    case CUPTISIM_OP_GRAPH_INSTANTIATE:
      return {RT(cudaGraphInstantiate_v12000), DR(cuGraphInstantiateWithFlags)};
    case CUPTISIM_OP_GRAPH_LAUNCH:
      return {RT(cudaGraphLaunch_v10000), DR(cuGraphLaunch)};
    case CUPTISIM_OP_GRAPH_CREATE:
      return {RT(cudaGraphCreate_v10000), DR(cuGraphCreate)};
    case CUPTISIM_OP_GRAPH_ADD_CHILD:
      return {RT(cudaGraphAddChildGraphNode_v10000), DR(cuGraphAddChildGraphNode)};
    case CUPTISIM_OP_GRAPH_CLONE:
      return {RT(cudaGraphClone_v10000), DR(cuGraphClone)};
    case CUPTISIM_OP_GRAPH_DESTROY_NODE:
      return {RT(cudaGraphDestroyNode_v10000), DR(cuGraphDestroyNode)};
    case CUPTISIM_OP_GRAPH_DESTROY:
      return {RT(cudaGraphDestroy_v10000), DR(cuGraphDestroy)};
    case CUPTISIM_OP_GRAPH_EXEC_UPDATE:
      return {RT(cudaGraphExecUpdate_v10020), DR(cuGraphExecUpdate_v2)};
    case CUPTISIM_OP_GRAPH_EXEC_SET_NODE:
      return {RT(cudaGraphExecKernelNodeSetParams_v10010), DR(cuGraphExecKernelNodeSetParams_v2)};
    case CUPTISIM_OP_GRAPH_EXEC_DESTROY:
      return {RT(cudaGraphExecDestroy_v10000), DR(cuGraphExecDestroy)};
    case CUPTISIM_OP_MODULE_UNLOAD:
      return {0, DR(cuModuleUnload)};
    case CUPTISIM_OP_MEMORY_POOL:
      return op.value == CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED
                 ? CallIds{RT(cudaMemPoolDestroy_v11020), DR(cuMemPoolDestroy)}
             : op.value == CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED
                 ? CallIds{RT(cudaMemPoolTrimTo_v11020), DR(cuMemPoolTrimTo)}
                 : CallIds{RT(cudaMemPoolCreate_v11020), DR(cuMemPoolCreate)};
    case CUPTISIM_OP_PROFILER_START:
      return {RT(cudaProfilerStart_v4000), DR(cuProfilerStart)};
    case CUPTISIM_OP_PROFILER_STOP:
      return {RT(cudaProfilerStop_v4000), DR(cuProfilerStop)};
    default:
      return {0, 0};
  }
}

// Launches have variants; the driver call under a runtime one is its own.
CUpti_CallbackId driver_call_under(CUpti_CallbackId runtime, CUpti_CallbackId usual) {
  switch (runtime) {
    case RT(cudaLaunchKernel_ptsz_v7000):
      return DR(cuLaunchKernel_ptsz);
    case RT(cudaLaunchKernelExC_v11060):
      return DR(cuLaunchKernelEx);
    case RT(cudaLaunchKernelExC_ptsz_v11060):
      return DR(cuLaunchKernelEx_ptsz);
    case RT(cudaLaunchCooperativeKernel_v9000):
      return DR(cuLaunchCooperativeKernel);
    case RT(cudaLaunchCooperativeKernel_ptsz_v9000):
      return DR(cuLaunchCooperativeKernel_ptsz);
    case RT(cudaGraphLaunch_ptsz_v10000):
      return DR(cuGraphLaunch_ptsz);
    default:
      return usual;
  }
}

unsigned at_least_one(int32_t n) { return static_cast<unsigned>(std::max(n, 1)); }

}  // namespace

CallIds ids_of(const cuptisim_op& op) {
  CallIds ids = usual_ids(op);
  if (op.domain == CUPTI_CB_DOMAIN_DRIVER_API) return {0, op.cbid ? op.cbid : ids.driver};
  if (op.cbid) {
    ids.runtime = op.cbid;
    ids.driver = driver_call_under(op.cbid, ids.driver);
  }
  return ids;
}

CallArguments::CallArguments(const Call& c, Api api, CUpti_CallbackId cbid) {
  const cuptisim_op& op = c.op;
  const CUstream stream = c.stream == kDefaultStream
                              ? nullptr
                              : reinterpret_cast<CUstream>(&Machine::get().stream(c.context, c.stream));
  if (op.kind == CUPTISIM_OP_GRAPH_LAUNCH || op.kind == CUPTISIM_OP_GRAPH_EXEC_UPDATE) {
    x_graph = {executable_handle(op.graph_id), stream};
    x_used = &x_graph;
    return;
  }
  if (op.kind == CUPTISIM_OP_GRAPH_BEGIN_CAPTURE || op.kind == CUPTISIM_OP_GRAPH_END_CAPTURE) {
    x_capture = {stream, op.value};
    x_used = &x_capture;
    return;
  }
  if (op.kind != CUPTISIM_OP_KERNEL || op.flags & CUPTISIM_ADD_NODE) return;
  const Dim3 grid{at_least_one(op.grid[0]), at_least_one(op.grid[1]), at_least_one(op.grid[2])};
  const Dim3 block{at_least_one(op.block[0]), at_least_one(op.block[1]), at_least_one(op.block[2])};
  // One handle per name, as one function has one.
  const auto* function = intern(op.name);
  const auto handle = reinterpret_cast<CUfunction>(const_cast<char*>(function));
  const auto shared = static_cast<unsigned>(op.dynamic_shared_memory);
  if (api == Api::kDriver) {
    if (cbid == DR(cuLaunchKernelEx) || cbid == DR(cuLaunchKernelEx_ptsz)) {
      x_config = {};
      x_config.gridDimX = grid.x, x_config.gridDimY = grid.y, x_config.gridDimZ = grid.z;
      x_config.blockDimX = block.x, x_config.blockDimY = block.y, x_config.blockDimZ = block.z;
      x_config.sharedMemBytes = shared;
      x_config.hStream = stream;
      x_driver_ex = {&x_config, handle, nullptr, nullptr};
      x_used = &x_driver_ex;
    } else if (cbid == DR(cuLaunchCooperativeKernelMultiDevice)) {
      x_driver_multi = {nullptr, Machine::get().devices(), 0};
      x_used = &x_driver_multi;
    } else {
      x_driver = {handle, grid, block, shared, stream, nullptr, nullptr};
      x_used = &x_driver;
    }
  } else if (cbid == RT(cudaLaunchKernelExC_v11060) || cbid == RT(cudaLaunchKernelExC_ptsz_v11060)) {
    x_runtime_config = {grid, block, shared, stream, nullptr, 0};
    x_runtime_ex = {&x_runtime_config, function, nullptr};
    x_used = &x_runtime_ex;
  } else {
    x_runtime = {function, grid, block, nullptr, shared, stream};
    x_used = &x_runtime;
  }
}

}  // namespace sim
