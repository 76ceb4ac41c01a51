// One simulated CUDA call after another: callbacks, scheduling, records.
#include <cuda.h>
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
#include <cupti_runtime_cbid.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "machine.h"

namespace sim {
namespace {

// cuLaunchKernel_params of generated_cuda_meta.h, which does not compile beside cuda.h alone.
struct cuLaunchKernel_params {
  CUfunction f;
  unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
  CUstream hStream;
  void** kernelParams;
  void** extra;
};

struct CallIds {
  CUpti_CallbackId runtime, driver;
};

CallIds usual_ids(const cuptisim_op& op) {
  const bool async = (op.flags & CUPTISIM_ASYNC) != 0;
  switch (op.kind) {
    case CUPTISIM_OP_KERNEL:
      return {CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel};
    case CUPTISIM_OP_MEMCPY:
      return {
          async ? CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020 : CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020,
          async ? CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync : CUPTI_DRIVER_TRACE_CBID_cuMemcpy};
    case CUPTISIM_OP_MEMCPY_PEER:
      return {CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyPeerAsync_v4000, CUPTI_DRIVER_TRACE_CBID_cuMemcpyPeerAsync};
    case CUPTISIM_OP_MEMSET:
      return {
          async ? CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020 : CUPTI_RUNTIME_TRACE_CBID_cudaMemset_v3020,
          async ? CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async : CUPTI_DRIVER_TRACE_CBID_cuMemsetD8_v2};
    case CUPTISIM_OP_SYNC_STREAM:
      return {CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020,
              CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize};
    case CUPTISIM_OP_SYNC_CONTEXT:
      return {CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020, CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize};
    case CUPTISIM_OP_SYNC_EVENT:
      return {CUPTI_RUNTIME_TRACE_CBID_cudaEventSynchronize_v3020,
              CUPTI_DRIVER_TRACE_CBID_cuEventSynchronize};
    case CUPTISIM_OP_STREAM_WAIT_EVENT:
      return {CUPTI_RUNTIME_TRACE_CBID_cudaStreamWaitEvent_v3020, CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent};
    case CUPTISIM_OP_EVENT_RECORD:
      return {CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020, CUPTI_DRIVER_TRACE_CBID_cuEventRecord};
    case CUPTISIM_OP_ALLOC:
      return {CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020, CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2};
    case CUPTISIM_OP_FREE:
      return {CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020, CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2};
    case CUPTISIM_OP_STREAM_CREATE:
      return {CUPTI_RUNTIME_TRACE_CBID_cudaStreamCreateWithPriority_v5050,
              CUPTI_DRIVER_TRACE_CBID_cuStreamCreateWithPriority};
    case CUPTISIM_OP_CONTEXT_CREATE:
      return {CUPTI_RUNTIME_TRACE_CBID_cudaSetDevice_v3020, CUPTI_DRIVER_TRACE_CBID_cuCtxCreate_v2};
    case CUPTISIM_OP_GRAPH_BEGIN_CAPTURE:
      return {CUPTI_RUNTIME_TRACE_CBID_cudaStreamBeginCapture_v10000,
              CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2};
    case CUPTISIM_OP_GRAPH_END_CAPTURE:
      return {CUPTI_RUNTIME_TRACE_CBID_cudaStreamEndCapture_v10000,
              CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture};
    case CUPTISIM_OP_GRAPH_LAUNCH:
      return {CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000, CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch};
    case CUPTISIM_OP_MODULE_UNLOAD:
      return {0, CUPTI_DRIVER_TRACE_CBID_cuModuleUnload};
    case CUPTISIM_OP_PROFILER_START:
      return {CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStart_v4000, CUPTI_DRIVER_TRACE_CBID_cuProfilerStart};
    case CUPTISIM_OP_PROFILER_STOP:
      return {CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStop_v4000, CUPTI_DRIVER_TRACE_CBID_cuProfilerStop};
    default:
      return {0, 0};
  }
}

thread_local uint32_t t_capturing = 0;  // graph that this thread captures into; 0: none

// One call on its way through: what every step needs.
struct Call {
  Machine& m;
  const cuptisim_op& op;
  Context* context;
  uint32_t stream;
  uint32_t correlation;
  uint64_t begin = 0;
};

uint64_t begin_call(Call& c) {
  if (c.op.flags & CUPTISIM_API_TIMES) {
    c.m.advance(c.op.api_start);
    return c.op.api_start;
  }
  return c.m.now();
}

uint64_t end_call(Call& c) {
  // The clock stays at the start: what other threads did during this call is yet to come.
  if (c.op.flags & CUPTISIM_API_TIMES) return c.op.api_end;
  if (c.m.virtual_clock()) c.m.advance(c.begin + c.m.api_call_ns());
  return c.m.now();
}

void api_record(Call& c, bool driver, CUpti_CallbackId cbid, uint64_t end) {
  if (!cbid || !api_record_wanted(driver, cbid)) return;
  CUpti_ActivityAPI r{};
  r.kind = driver ? CUPTI_ACTIVITY_KIND_DRIVER : CUPTI_ACTIVITY_KIND_RUNTIME;
  r.cbid = cbid;
  r.start = c.begin;
  r.end = end;
  r.processId = static_cast<uint32_t>(getpid());
  r.threadId = c.op.thread ? c.op.thread : this_thread_id();
  r.correlationId = c.correlation;
  r.returnValue = c.op.return_value;
  emit(&r, sizeof r, 0);
}

struct Placed {
  uint64_t start, end;
};

// When the work of `op` runs, given that its call is at `call_time`.
Placed place(Machine& m, const cuptisim_op& op, Context* context, uint32_t stream, uint64_t call_time) {
  if (op.flags & CUPTISIM_GPU_TIMES) {
    m.occupy(context, stream, op.gpu_end);
    return {op.gpu_start, op.gpu_end};
  }
  const bool serialise = kind_enabled(CUPTI_ACTIVITY_KIND_KERNEL) && op.kind == CUPTISIM_OP_KERNEL;
  const uint64_t duration = op.duration_ns ? op.duration_ns : 1000;
  const uint64_t start = m.schedule(context, stream, call_time + m.launch_latency(), duration, serialise);
  return {start, start + duration};
}

void kernel_record(Machine& m, const cuptisim_op& op, Context* context, uint32_t stream, uint32_t correlation,
                   Placed at, uint64_t node, uint32_t graph) {
  m.truth.kernels.fetch_add(1, std::memory_order_relaxed);
  const bool serial = kind_enabled(CUPTI_ACTIVITY_KIND_KERNEL);
  if ((!serial && !kind_enabled(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) || (op.flags & CUPTISIM_NO_RECORD))
    return;
  CUpti_ActivityKernel10 r{};
  r.kind = serial ? CUPTI_ACTIVITY_KIND_KERNEL : CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  r.cacheConfig.both = 0;
  const bool recorded = (op.flags & CUPTISIM_GPU_TIMES) != 0;  // then 0 is what the record said
  r.registersPerThread =
      static_cast<uint16_t>(op.registers_per_thread || recorded ? op.registers_per_thread : 32);
  const bool zero = m.strikes(CUPTISIM_FAULT_ZERO_TIMESTAMPS);
  r.start = zero ? 0 : at.start;
  r.end = zero ? 0 : at.end;
  r.deviceId = context->device;
  r.contextId = context->id;
  r.streamId = stream;
  r.gridX = std::max(op.grid[0], 1), r.gridY = std::max(op.grid[1], 1), r.gridZ = std::max(op.grid[2], 1);
  r.blockX = std::max(op.block[0], 1), r.blockY = std::max(op.block[1], 1),
  r.blockZ = std::max(op.block[2], 1);
  r.staticSharedMemory = op.static_shared_memory;
  r.dynamicSharedMemory = op.dynamic_shared_memory;
  r.localMemoryPerThread = op.local_memory_per_thread;
  r.correlationId = correlation;
  r.gridId = correlation;
  r.name = m.intern(op.name);
  r.sharedMemoryExecuted = static_cast<uint32_t>(op.static_shared_memory + op.dynamic_shared_memory);
  r.graphNodeId = node;
  r.graphId = graph;
  r.channelID = op.channel;
  r.channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
  r.clusterX = op.cluster[0], r.clusterY = op.cluster[1], r.clusterZ = op.cluster[2];
  emit(&r, sizeof r, at.end);
}

void copy_record(Machine& m, const cuptisim_op& op, Context* context, uint32_t stream, uint32_t correlation,
                 Placed at, uint64_t node, uint32_t graph) {
  m.truth.memcpys.fetch_add(1, std::memory_order_relaxed);
  if (op.flags & CUPTISIM_NO_RECORD) return;
  const uint8_t flags = op.flags & CUPTISIM_ASYNC ? 1 : 0;  // CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC
  if (op.kind == CUPTISIM_OP_MEMCPY_PEER) {
    if (!kind_enabled(CUPTI_ACTIVITY_KIND_MEMCPY2)) return;
    CUpti_ActivityMemcpyPtoP4 r{};
    r.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
    r.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
    r.srcKind = r.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    r.flags = flags;
    r.bytes = op.bytes;
    r.start = at.start, r.end = at.end;
    r.deviceId = r.srcDeviceId = context->device;
    r.contextId = r.srcContextId = context->id;
    r.dstDeviceId = op.dst_device;
    r.dstContextId = op.dst_context;
    r.streamId = stream;
    r.correlationId = correlation;
    r.graphNodeId = node, r.graphId = graph;
    r.channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY;
    return emit(&r, sizeof r, at.end);
  }
  if (!kind_enabled(CUPTI_ACTIVITY_KIND_MEMCPY)) return;
  CUpti_ActivityMemcpy6 r{};
  r.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  r.copyKind = static_cast<uint8_t>(op.copy_kind ? op.copy_kind : CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
  const bool to_host = r.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH,
             to_device = r.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  const uint8_t pageable = CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE, device = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  r.srcKind = op.src_kind ? static_cast<uint8_t>(op.src_kind) : to_device ? pageable : device;
  r.dstKind = op.dst_kind ? static_cast<uint8_t>(op.dst_kind) : to_host ? pageable : device;
  r.flags = flags;
  r.bytes = op.bytes;
  r.start = at.start, r.end = at.end;
  r.deviceId = context->device;
  r.contextId = context->id;
  r.streamId = stream;
  r.correlationId = correlation;
  r.graphNodeId = node, r.graphId = graph;
  r.channelID = op.channel;
  r.channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY;
  r.copyCount = 1;
  emit(&r, sizeof r, at.end);
}

void set_record(Machine& m, const cuptisim_op& op, Context* context, uint32_t stream, uint32_t correlation,
                Placed at, uint64_t node, uint32_t graph) {
  m.truth.memsets.fetch_add(1, std::memory_order_relaxed);
  if (!kind_enabled(CUPTI_ACTIVITY_KIND_MEMSET) || (op.flags & CUPTISIM_NO_RECORD)) return;
  CUpti_ActivityMemset4 r{};
  r.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  r.value = op.value;
  r.bytes = op.bytes;
  r.start = at.start, r.end = at.end;
  r.deviceId = context->device;
  r.contextId = context->id;
  r.streamId = stream;
  r.correlationId = correlation;
  r.flags = op.flags & CUPTISIM_ASYNC ? 1 : 0;  // CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC
  r.memoryKind =
      static_cast<uint16_t>(op.memory_kind ? op.memory_kind : uint32_t{CUPTI_ACTIVITY_MEMORY_KIND_DEVICE});
  r.graphNodeId = node, r.graphId = graph;
  r.channelID = op.channel;
  r.channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
  emit(&r, sizeof r, at.end);
}

Placed work_records(Machine& m, const cuptisim_op& op, Context* context, uint32_t stream,
                    uint32_t correlation, uint64_t call_time, uint64_t node, uint32_t graph) {
  const Placed at = place(m, op, context, stream, call_time);
  switch (op.kind) {
    case CUPTISIM_OP_KERNEL:
      kernel_record(m, op, context, stream, correlation, at, node, graph);
      break;
    case CUPTISIM_OP_MEMSET:
      set_record(m, op, context, stream, correlation, at, node, graph);
      break;
    default:
      copy_record(m, op, context, stream, correlation, at, node, graph);
  }
  return at;
}

void graph_launch(Call& c) {
  const bool trace = kind_enabled(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
  CUpti_ActivityGraphTrace2 r{};
  for (const GraphNode& node : c.m.graph(c.op.graph_id)) {
    Placed at;
    if (trace) {
      // One record for the whole launch, none for its nodes.
      at = place(c.m, node.op, c.context, c.stream, c.begin);
      if (node.op.kind == CUPTISIM_OP_KERNEL) c.m.truth.kernels.fetch_add(1, std::memory_order_relaxed);
    } else {
      at = work_records(c.m, node.op, c.context, c.stream, c.correlation, c.begin, node.id, c.op.graph_id);
    }
    if (r.start == 0) r.start = at.start;
    r.end = at.end;
  }
  if (!trace || r.start == 0) return;
  r.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
  r.correlationId = c.correlation;
  r.deviceId = r.endDeviceId = c.context->device;
  r.contextId = r.endContextId = c.context->id;
  r.graphId = c.op.graph_id;
  r.streamId = c.stream;
  emit(&r, sizeof r, r.end);
}

void add_node(Call& c) {
  GraphNode node{c.op, c.m.next_graph_node()};
  node.op.name = c.m.intern(c.op.name);
  c.m.graph(t_capturing).push_back(node);
  CUpti_GraphData graph{};
  CUpti_ResourceData data{};
  data.context = reinterpret_cast<CUcontext>(c.context);
  data.resourceDescriptor = &graph;
  call_back(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, &data);
}

void sync_record(Call& c, CUpti_ActivitySynchronizationType type, uint64_t end) {
  if (!kind_enabled(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)) return;
  CUpti_ActivitySynchronization2 r{};
  r.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  r.type = type;
  r.start = c.op.flags & CUPTISIM_GPU_TIMES ? c.op.gpu_start : c.begin;
  r.end = c.op.flags & CUPTISIM_GPU_TIMES ? c.op.gpu_end : end;
  r.correlationId = c.correlation;
  r.contextId = c.context->id;
  constexpr uint32_t none = CUPTI_SYNCHRONIZATION_INVALID_VALUE;
  r.streamId = type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE ? none : c.stream;
  r.cudaEventId = c.op.event ? c.op.event : none;
  emit(&r, sizeof r, 0);
}

void memory_record(Call& c) {
  if (!kind_enabled(CUPTI_ACTIVITY_KIND_MEMORY2)) return;
  CUpti_ActivityMemory4 r{};
  r.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
  r.memoryOperationType = c.op.kind == CUPTISIM_OP_ALLOC ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION
                                                         : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
  r.memoryKind = static_cast<CUpti_ActivityMemoryKind>(c.op.memory_kind ? c.op.memory_kind
                                                                        : CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
  r.correlationId = c.correlation;
  r.address = c.op.address;
  r.bytes = c.op.bytes;
  r.timestamp = c.begin;
  r.deviceId = c.context->device;
  r.contextId = c.context->id;
  r.streamId = c.op.flags & CUPTISIM_ASYNC ? c.stream : 0xffffffff;
  r.isAsync = (c.op.flags & CUPTISIM_ASYNC) != 0;
  emit(&r, sizeof r, 0);
}

// What the call does between its entry and its exit.
void body(Call& c) {
  Machine& m = c.m;
  const cuptisim_op& op = c.op;
  switch (op.kind) {
    case CUPTISIM_OP_KERNEL:
    case CUPTISIM_OP_MEMCPY:
    case CUPTISIM_OP_MEMCPY_PEER:
    case CUPTISIM_OP_MEMSET: {
      if (t_capturing != 0) return add_node(c);
      const Placed at = work_records(m, op, c.context, c.stream, c.correlation, c.begin, op.graph_node_id,
                                     op.graph_node_id ? op.graph_id : 0);
      const bool waits = op.kind != CUPTISIM_OP_KERNEL && !(op.flags & (CUPTISIM_ASYNC | CUPTISIM_API_TIMES));
      if (waits) m.wait_until(at.end);
      return;
    }
    case CUPTISIM_OP_GRAPH_BEGIN_CAPTURE:
      t_capturing = op.graph_id;
      m.graph(op.graph_id).clear();
      return;
    case CUPTISIM_OP_GRAPH_END_CAPTURE:
      t_capturing = 0;
      return;
    case CUPTISIM_OP_GRAPH_LAUNCH:
      return graph_launch(c);
    case CUPTISIM_OP_MODULE_UNLOAD: {
      CUpti_ResourceData data{};
      data.context = reinterpret_cast<CUcontext>(c.context);
      call_back(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING, &data);
      return m.unload_names();
    }
    case CUPTISIM_OP_SYNC_STREAM:
    case CUPTISIM_OP_SYNC_EVENT:
      if (!(op.flags & CUPTISIM_API_TIMES)) m.wait_until(m.busy_until(c.context, c.stream));
      return;
    case CUPTISIM_OP_SYNC_CONTEXT:
      if (!(op.flags & CUPTISIM_API_TIMES)) m.wait_until(m.context_busy_until(c.context));
      return;
    case CUPTISIM_OP_EVENT_RECORD: {
      if (!kind_enabled(CUPTI_ACTIVITY_KIND_CUDA_EVENT)) return;
      CUpti_ActivityCudaEvent2 r{};
      r.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
      r.correlationId = c.correlation;
      r.contextId = c.context->id;
      r.streamId = c.stream;
      r.eventId = op.event;
      r.deviceId = c.context->device;
      return emit(&r, sizeof r, 0);
    }
    case CUPTISIM_OP_ALLOC:
    case CUPTISIM_OP_FREE:
      return memory_record(c);
    case CUPTISIM_OP_STREAM_CREATE: {
      if (!kind_enabled(CUPTI_ACTIVITY_KIND_STREAM)) return;
      CUpti_ActivityStream r{};
      r.kind = CUPTI_ACTIVITY_KIND_STREAM;
      r.contextId = c.context->id;
      r.streamId = c.stream;
      r.priority = op.priority;
      r.flag = CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING;
      r.correlationId = c.correlation;
      return emit(&r, sizeof r, 0);
    }
    default:
      return;
  }
}

void sync_records(Call& c, uint64_t end) {
  switch (c.op.kind) {
    case CUPTISIM_OP_SYNC_STREAM:
      return sync_record(c, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE, end);
    case CUPTISIM_OP_SYNC_CONTEXT:
      return sync_record(c, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE, end);
    case CUPTISIM_OP_SYNC_EVENT:
      return sync_record(c, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE, end);
    case CUPTISIM_OP_STREAM_WAIT_EVENT:
      return sync_record(c, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT, end);
    default:
      return;
  }
}

uint32_t run_one(const cuptisim_op& op) {
  Machine& m = Machine::get();
  if (op.size != sizeof(cuptisim_op) || op.kind < CUPTISIM_OP_KERNEL || op.kind > CUPTISIM_OP_MODULE_UNLOAD)
    return CUDA_ERROR_INVALID_VALUE;
  if (op.device >= m.devices()) return CUDA_ERROR_INVALID_DEVICE;
  Call c{m, op, m.context(op.device, op.context), op.stream ? op.stream : 7, op.correlation};
  if (!c.correlation) {
    c.correlation = m.next_correlation.fetch_add(1, std::memory_order_relaxed) + 1;
  } else {
    uint32_t seen = m.next_correlation.load(std::memory_order_relaxed);
    while (seen < c.correlation && !m.next_correlation.compare_exchange_weak(seen, c.correlation)) {
    }
  }
  if (op.flags & CUPTISIM_NO_API) {
    c.begin = op.flags & CUPTISIM_GPU_TIMES ? op.gpu_start : m.now();
    body(c);
    return CUDA_SUCCESS;
  }

  const CallIds usual = usual_ids(op);
  const bool runtime = op.domain != CUPTI_CB_DOMAIN_DRIVER_API;
  const CUpti_CallbackId runtime_id = runtime ? (op.cbid ? op.cbid : usual.runtime) : 0;
  // A runtime call ends in a driver call of the usual kind; calls that give no work may not reach the driver
  // at all.
  const CUpti_CallbackId driver_id = !runtime && op.cbid ? op.cbid : usual.driver;

  m.truth.api_calls.fetch_add(1, std::memory_order_relaxed);
  c.begin = begin_call(c);
  uint64_t scratch = 0;
  CUresult result = static_cast<CUresult>(op.return_value);
  cuLaunchKernel_params launch{};
  const bool runtime_calls = runtime_id && callback_enabled(CUPTI_CB_DOMAIN_RUNTIME_API, runtime_id);
  const bool driver_calls = driver_id && callback_enabled(CUPTI_CB_DOMAIN_DRIVER_API, driver_id);
  CUpti_CallbackData data{};
  if (runtime_calls || driver_calls) {
    data.context = reinterpret_cast<CUcontext>(c.context);
    data.contextUid = c.context->id;
    data.correlationId = c.correlation;
    data.correlationData = &scratch;
    data.functionReturnValue = &result;
    if (op.kind == CUPTISIM_OP_KERNEL) {
      data.symbolName = m.intern(op.name);
      launch.gridDimX = static_cast<unsigned>(op.grid[0]),
      launch.gridDimY = static_cast<unsigned>(op.grid[1]);
      launch.gridDimZ = static_cast<unsigned>(op.grid[2]);
      launch.blockDimX = static_cast<unsigned>(op.block[0]),
      launch.blockDimY = static_cast<unsigned>(op.block[1]);
      launch.blockDimZ = static_cast<unsigned>(op.block[2]);
      launch.sharedMemBytes = static_cast<unsigned>(op.dynamic_shared_memory);
      launch.hStream = reinterpret_cast<CUstream>(static_cast<uintptr_t>(c.stream));
      data.functionParams = &launch;
    }
  }
  auto call = [&](CUpti_ApiCallbackSite site, bool driver) {
    data.callbackSite = site;
    const CUpti_CallbackId id = driver ? driver_id : runtime_id;
    const char* name = nullptr;
    const auto domain = driver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API;
    cuptiGetCallbackName(domain, id, &name);
    data.functionName = name;
    call_back(domain, id, &data);
  };
  if (runtime_calls) call(CUPTI_API_ENTER, false);
  if (driver_calls) call(CUPTI_API_ENTER, true);
  emit_external_correlation(c.correlation);
  body(c);
  if (driver_calls) call(CUPTI_API_EXIT, true);
  if (runtime_calls) call(CUPTI_API_EXIT, false);
  const uint64_t end = end_call(c);
  sync_records(c, end);
  if (runtime)
    api_record(c, false, runtime_id, end);
  else
    api_record(c, true, driver_id, end);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace sim

using namespace sim;

SIM_EXPORT int cuptisim_run(const cuptisim_op* ops, size_t count, size_t* done) {
  size_t i = 0;
  uint32_t rc = CUDA_SUCCESS;
  for (; i < count && rc == CUDA_SUCCESS; ++i) rc = run_one(ops[i]);
  if (done) *done = rc == CUDA_SUCCESS ? i : i - 1;
  return static_cast<int>(rc);
}
