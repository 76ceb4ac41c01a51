// Records of calls and of what there is: API calls, synchronisations, events, memory, streams, contexts,
// devices.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "sim/activity/buffers.h"
#include "sim/activity/callbacks.h"
#include "sim/activity/records.h"
#include "sim/activity/wanted_records.h"
#include "sim/machine/inside.h"

namespace sim {

void emit_api_record(const Call& c, Api api, CUpti_CallbackId cbid, uint64_t end) {
  CUpti_ActivityAPI r{};
  r.kind = api == Api::kDriver ? CUPTI_ACTIVITY_KIND_DRIVER : CUPTI_ACTIVITY_KIND_RUNTIME;
  r.cbid = cbid;
  r.start = c.begin;
  r.end = end;
  r.processId = this_process_id();
  r.threadId = c.op.thread ? c.op.thread : this_thread_id();
  r.correlationId = c.correlation;
  r.returnValue = c.result;
  emit(&r, sizeof r, 0);
}

void emit_sync_record(const Call& c, CUpti_ActivitySynchronizationType type, uint64_t end) {
  if (!kind_enabled(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)) return;
  constexpr uint32_t none = CUPTI_SYNCHRONIZATION_INVALID_VALUE;
  CUpti_ActivitySynchronization2 r{};
  r.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  r.type = type;
  r.start = c.op.flags & CUPTISIM_GPU_TIMES ? c.op.gpu_start : c.begin;
  r.end = c.op.flags & CUPTISIM_GPU_TIMES ? c.op.gpu_end : end;
  r.correlationId = c.correlation;
  r.contextId = c.context->id;
  r.streamId = type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE ? none : c.stream;
  r.cudaEventId = none;
  if (c.op.event) {
    r.cudaEventId = c.op.event;
    r.cudaEventSyncId = Machine::get().event(c.op.event).sync_id;
  }
  r.returnValue = c.result;
  emit(&r, sizeof r, 0);
}

void emit_event_record(const Call& c, uint64_t sync_id, uint64_t device_time) {
  if (!kind_enabled(CUPTI_ACTIVITY_KIND_CUDA_EVENT)) return;
  CUpti_ActivityCudaEvent2 r{};
  r.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
  r.correlationId = c.correlation;
  r.contextId = c.context->id;
  r.streamId = c.stream;
  r.eventId = c.op.event;
  r.deviceId = c.context->device;
  r.cudaEventSyncId = sync_id;
  if (!device_event_timestamps()) return emit(&r, sizeof r, 0);
  r.deviceTimestamp = device_time;
  emit(&r, sizeof r, device_time);
}

void emit_memory_record(const Call& c) {
  if (!kind_enabled(CUPTI_ACTIVITY_KIND_MEMORY2)) return;
  CUpti_ActivityMemory4 r{};
  r.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
  r.memoryOperationType = c.op.kind == CUPTISIM_OP_ALLOC ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION
                                                         : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
  r.memoryKind = c.op.memory_kind ? static_cast<CUpti_ActivityMemoryKind>(c.op.memory_kind)
                                  : CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  r.correlationId = c.correlation;
  r.address = c.op.address;
  r.bytes = c.op.bytes;
  r.timestamp = c.begin;
  r.processId = this_process_id();
  r.deviceId = c.context->device;
  r.contextId = c.context->id;
  r.streamId = c.op.flags & CUPTISIM_ASYNC ? c.stream : CUPTI_INVALID_STREAM_ID;
  r.isAsync = (c.op.flags & CUPTISIM_ASYNC) != 0;
  emit(&r, sizeof r, 0);
}

void emit_memory_pool_record(const Call& c) {
  if (!kind_enabled(CUPTI_ACTIVITY_KIND_MEMORY_POOL)) return;
  CUpti_ActivityMemoryPool3 r{};
  r.kind = CUPTI_ACTIVITY_KIND_MEMORY_POOL;
  r.memoryPoolOperationType = static_cast<CUpti_ActivityMemoryPoolOperationType>(c.op.value);
  r.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
  r.correlationId = c.correlation;
  r.processId = this_process_id();
  r.deviceId = c.context->device;
  r.address = c.op.address;
  r.size = c.op.bytes;
  r.timestamp = c.begin;
  emit(&r, sizeof r, 0);
}

void emit_full_queue_record(const Call& c, uint64_t start) {
  if (!kind_enabled(CUPTI_ACTIVITY_KIND_OVERHEAD)) return;
  CUpti_ActivityOverhead3 r{};
  r.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
  r.overheadKind = CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL;
  r.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
  r.objectId.pt.processId = this_process_id();
  r.objectId.pt.threadId = c.op.thread ? c.op.thread : this_thread_id();
  r.start = start;
  r.end = Machine::get().now();
  r.correlationId = c.correlation;
  r.overheadData =
      std::calloc(1, sizeof(CUpti_ActivityOverheadCommandBufferFullData));  // the client frees it
  emit(&r, sizeof r, 0);
}

namespace {

void emit_stream(uint32_t context, uint32_t stream, uint32_t priority, uint32_t correlation) {
  CUpti_ActivityStream r{};
  r.kind = CUPTI_ACTIVITY_KIND_STREAM;
  r.contextId = context;
  r.streamId = stream;
  r.priority = priority;
  r.flag = CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING;
  r.correlationId = correlation;
  emit(&r, sizeof r, 0);
}

}  // namespace

void emit_stream_record(const Call& c) {
  if (kind_enabled(CUPTI_ACTIVITY_KIND_STREAM))
    emit_stream(c.context->id, c.stream, c.op.priority, c.correlation);
}

void emit_context_record(const Context& c) {
  if (!kind_enabled(CUPTI_ACTIVITY_KIND_CONTEXT)) return;
  CUpti_ActivityContext3 r{};
  r.kind = CUPTI_ACTIVITY_KIND_CONTEXT;
  r.contextId = c.id;
  r.deviceId = c.device;
  r.computeApiKind = CUPTI_ACTIVITY_COMPUTE_API_CUDA;
  r.nullStreamId = kDefaultStream;
  emit(&r, sizeof r, 0);
}

namespace {

// A context was made: its record, and the resource callbacks.
void announce_context(Context& c) {
  initialise_cuda();
  emit_context_record(c);
  const auto handle = reinterpret_cast<CUcontext>(&c);
  resource_callback(CUPTI_CBID_RESOURCE_CONTEXT_CREATED, handle);
  CUpti_ModuleResourceData module{};  // there is no code to show
  module.moduleId = c.id;
  resource_callback(CUPTI_CBID_RESOURCE_MODULE_LOADED, handle, nullptr, &module);
}

constexpr ContextWatch kContextWatch{[] { return latency_timestamps(); }, &announce_context};
[[maybe_unused]] const bool g_watching = (Machine::get().set_watch(&kContextWatch), true);

void emit_device_records() {
  Machine& m = Machine::get();
  const Chip& c = m.chip();
  for (uint32_t d = 0; d < m.devices(); ++d) {
    CUpti_ActivityDevice5 r{};
    r.kind = CUPTI_ACTIVITY_KIND_DEVICE;
    r.flags = CUPTI_ACTIVITY_FLAG_DEVICE_CONCURRENT_KERNELS;
    r.globalMemoryBandwidth = c.bandwidth_kb;
    r.globalMemorySize = c.memory_bytes;
    r.constantMemorySize = 65536;
    r.l2CacheSize = c.l2_bytes;
    r.numThreadsPerWarp = 32;
    r.coreClockRate = c.clock_khz;
    r.numMemcpyEngines = c.copy_engines;
    r.numMultiprocessors = c.sms;
    r.maxIPC = 4;
    r.maxWarpsPerMultiprocessor = c.warps_per_sm;
    r.maxBlocksPerMultiprocessor = c.blocks_per_sm;
    r.maxSharedMemoryPerMultiprocessor = c.shared_per_sm;
    r.maxRegistersPerMultiprocessor = r.maxRegistersPerBlock = 65536;
    r.maxSharedMemoryPerBlock = 49152;
    r.maxThreadsPerBlock = r.maxBlockDimX = r.maxBlockDimY = 1024;
    r.maxBlockDimZ = 64;
    r.maxGridDimX = 2147483647;
    r.maxGridDimY = r.maxGridDimZ = 65535;
    r.computeCapabilityMajor = c.major;
    r.computeCapabilityMinor = c.minor;
    r.id = d;
    // Up to 12.9 the name is shared, from 13.0 on each record brings its own, which the client frees.
    r.name = m.version() >= 130000 ? strdup(c.product) : c.product;
    r.isCudaVisible = 1;
    emit(&r, sizeof r, 0);
  }
}

}  // namespace

void initialise_cuda() {
  if (Machine::get().initialise() && kind_enabled(CUPTI_ACTIVITY_KIND_DEVICE)) emit_device_records();
}

void dump_existing(CUpti_ActivityKind kind) {
  Machine& m = Machine::get();
  if (kind == CUPTI_ACTIVITY_KIND_DEVICE && m.initialised()) emit_device_records();
  for (Context* c : m.contexts()) {
    if (kind == CUPTI_ACTIVITY_KIND_CONTEXT) emit_context_record(*c);
    if (kind != CUPTI_ACTIVITY_KIND_STREAM) continue;
    std::vector<std::pair<uint32_t, uint32_t>> streams;
    {
      const std::lock_guard lock(c->mutex);
      for (const auto& [id, s] : c->streams)
        if (s->created) streams.emplace_back(id, s->priority);
    }
    for (const auto& [id, priority] : streams) emit_stream(c->id, id, priority, 0);
  }
}

}  // namespace sim

using namespace sim;

SIM_EXPORT void cuptisim_environment(uint32_t device, uint32_t kind, const uint32_t* values, size_t count) {
  const Inside inside;
  if (!kind_enabled(CUPTI_ACTIVITY_KIND_ENVIRONMENT)) return;
  CUpti_ActivityEnvironment r{};
  r.kind = CUPTI_ACTIVITY_KIND_ENVIRONMENT;
  r.deviceId = device;
  r.timestamp = Machine::get().now();
  r.environmentKind = static_cast<CUpti_ActivityEnvironmentKind>(kind);
  std::memcpy(&r.data, values, std::min(count * sizeof *values, sizeof r.data));
  emit(&r, sizeof r, 0);
}
