// Records of what the GPU does: kernels, copies, sets, graph launches.
#include <algorithm>
#include <cstring>

#include "sim/activity/buffers.h"
#include "sim/activity/records.h"
#include "sim/activity/wanted_records.h"
#include "sim/counters/counting.h"
#include "sim/machine/faults.h"
#include "sim/machine/name_memory.h"

namespace sim {
namespace {

// Hardware channels of work that names none.
constexpr uint32_t kComputeChannel = 8, kToDeviceChannel = 11, kToHostChannel = 12, kPeerChannel = 13;

constexpr int64_t kSharedStep = 8192;      // bytes that an SM's shared memory is configured in
constexpr int64_t kReservedShared = 1024;  // bytes that each block takes beside its own, since Ampere

// Where records of 13.4 and later have sourceGraphId, a u32, and eight bytes further sourceGraphNodeId
// (CUpti_ActivityKernel13, CUpti_ActivityMemcpy7, CUpti_ActivityMemset5 of 13.5).
constexpr size_t kKernelSource = 232, kMemcpySource = 96, kMemsetSource = 88;
constexpr uint32_t kFirstWithSource = 130400;

// The record, and in newer libraries the node that this one was instantiated or last updated from.
template <typename Record>
void emit_with_source(const Record& r, const Work& w, size_t at) {
  if (Machine::get().version() < kFirstWithSource) return emit(&r, sizeof r, w.at.end);
  alignas(8) uint8_t wide[256] = {};
  static_assert(sizeof r + 16 < sizeof wide);
  std::memcpy(wide, &r, sizeof r);
  std::memcpy(wide + at, &w.graph, sizeof w.graph);
  std::memcpy(wide + at + 8, &w.source, sizeof w.source);
  emit(wide, at + 16, w.at.end);
}

void kernel_record(const Work& w) {
  if (g_started_samplers.load() != 0 && fault(CUPTISIM_FAULT_SAMPLED_UNRECORDED)) return;
  const cuptisim_op& op = w.op;
  Machine& m = Machine::get();
  const Chip& chip = m.chip();
  const bool serial = kind_enabled(CUPTI_ACTIVITY_KIND_KERNEL, w.context);
  CUpti_ActivityKernel10 r{};
  r.kind = serial ? CUPTI_ACTIVITY_KIND_KERNEL : CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  r.sharedMemoryConfig = 1;                                    // CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE
  const bool recorded = (op.flags & CUPTISIM_GPU_TIMES) != 0;  // then 0 is what the record said
  r.registersPerThread =
      static_cast<uint16_t>(op.registers_per_thread || recorded ? op.registers_per_thread : 32);
  r.partitionedGlobalCacheRequested = CUPTI_ACTIVITY_PARTITIONED_GLOBAL_CACHE_CONFIG_NOT_SUPPORTED;
  r.partitionedGlobalCacheExecuted = CUPTI_ACTIVITY_PARTITIONED_GLOBAL_CACHE_CONFIG_NOT_SUPPORTED;
  if (!strikes(CUPTISIM_FAULT_ZERO_TIMESTAMPS)) r.start = w.at.start, r.end = w.at.end;
  r.deviceId = w.context.device;
  r.contextId = w.context.id;
  r.streamId = w.stream;
  r.gridX = std::max(op.grid[0], 1), r.gridY = std::max(op.grid[1], 1), r.gridZ = std::max(op.grid[2], 1);
  r.blockX = std::max(op.block[0], 1), r.blockY = std::max(op.block[1], 1);
  r.blockZ = std::max(op.block[2], 1);
  r.staticSharedMemory = op.static_shared_memory;
  r.dynamicSharedMemory = op.dynamic_shared_memory;
  r.localMemoryPerThread = op.local_memory_per_thread;
  // The driver reserves local memory for every thread that can be resident.
  r.localMemoryTotal_v2 = uint64_t{op.local_memory_per_thread} * chip.sms * chip.warps_per_sm * 32;
  r.localMemoryTotal = static_cast<uint32_t>(r.localMemoryTotal_v2);
  r.correlationId = w.correlation;
  r.gridId = w.correlation;
  r.name = intern(op.name);
  if (latency_timestamps() && w.context.latency && w.node == 0) {
    r.queued = w.call_time;
    r.submitted = w.call_time + m.launch_latency() / 2;
  }
  const int64_t per_block =
      int64_t{op.static_shared_memory} + op.dynamic_shared_memory + (chip.major >= 8 ? kReservedShared : 0);
  const int64_t steps = (std::max<int64_t>(per_block, 0) + kSharedStep - 1) / kSharedStep;
  r.sharedMemoryExecuted = static_cast<uint32_t>(std::min<int64_t>(steps * kSharedStep, chip.shared_per_sm));
  r.graphNodeId = w.node;
  r.graphId = w.graph;
  r.channelID = op.channel ? op.channel : kComputeChannel;
  r.channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
  r.clusterX = op.cluster[0], r.clusterY = op.cluster[1], r.clusterZ = op.cluster[2];
  if (op.cluster[0] != 0) {
    const uint32_t blocks =
        std::max(op.cluster[0] * std::max(op.cluster[1], 1u) * std::max(op.cluster[2], 1u), 1u);
    r.maxPotentialClusterSize = 8;
    r.maxActiveClusters = chip.sms / blocks;
  }
  emit_with_source(r, w, kKernelSource);
}

void peer_copy_record(const Work& w) {
  const cuptisim_op& op = w.op;
  CUpti_ActivityMemcpyPtoP4 r{};
  r.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
  r.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
  r.srcKind = r.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  r.flags = op.flags & CUPTISIM_ASYNC ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0;
  r.bytes = op.bytes;
  r.start = w.at.start, r.end = w.at.end;
  r.deviceId = r.srcDeviceId = w.context.device;
  r.contextId = r.srcContextId = w.context.id;
  r.dstDeviceId = op.dst_device;
  r.dstContextId = op.dst_context;
  r.streamId = w.stream;
  r.correlationId = w.correlation;
  r.graphNodeId = w.node, r.graphId = w.graph;
  r.channelID = op.channel ? op.channel : kPeerChannel;
  r.channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY;
  emit(&r, sizeof r, w.at.end);
}

void copy_record(const Work& w) {
  const cuptisim_op& op = w.op;
  CUpti_ActivityMemcpy6 r{};
  r.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  r.copyKind = static_cast<uint8_t>(op.copy_kind ? op.copy_kind : uint32_t{CUPTI_ACTIVITY_MEMCPY_KIND_HTOD});
  const bool to_host = r.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH,
             to_device = r.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  const uint8_t pageable = CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE, device = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  r.srcKind = op.src_kind ? static_cast<uint8_t>(op.src_kind) : to_device ? pageable : device;
  r.dstKind = op.dst_kind ? static_cast<uint8_t>(op.dst_kind) : to_host ? pageable : device;
  r.flags = op.flags & CUPTISIM_ASYNC ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0;
  r.bytes = op.bytes;
  r.start = w.at.start, r.end = w.at.end;
  r.deviceId = w.context.device;
  r.contextId = w.context.id;
  r.streamId = w.stream;
  r.correlationId = w.correlation;
  r.graphNodeId = w.node, r.graphId = w.graph;
  r.channelID = op.channel ? op.channel : to_host ? kToHostChannel : kToDeviceChannel;
  r.channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY;
  r.copyCount = 1;
  emit_with_source(r, w, kMemcpySource);
}

void set_record(const Work& w) {
  const cuptisim_op& op = w.op;
  CUpti_ActivityMemset4 r{};
  r.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  r.value = op.value;
  r.bytes = op.bytes;
  r.start = w.at.start, r.end = w.at.end;
  r.deviceId = w.context.device;
  r.contextId = w.context.id;
  r.streamId = w.stream;
  r.correlationId = w.correlation;
  r.flags = op.flags & CUPTISIM_ASYNC ? CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC : 0;
  r.memoryKind =
      static_cast<uint16_t>(op.memory_kind ? op.memory_kind : uint32_t{CUPTI_ACTIVITY_MEMORY_KIND_DEVICE});
  r.graphNodeId = w.node, r.graphId = w.graph;
  r.channelID = op.channel ? op.channel : kComputeChannel;
  r.channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
  emit_with_source(r, w, kMemsetSource);
}

}  // namespace

void emit_work_record(const Work& w) {
  if (w.op.flags & CUPTISIM_NO_RECORD) return;
  switch (w.op.kind) {
    case CUPTISIM_OP_KERNEL:
      if (kind_enabled(CUPTI_ACTIVITY_KIND_KERNEL, w.context) ||
          kind_enabled(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, w.context))
        kernel_record(w);
      return;
    case CUPTISIM_OP_MEMSET:
      if (kind_enabled(CUPTI_ACTIVITY_KIND_MEMSET, w.context)) set_record(w);
      return;
    case CUPTISIM_OP_MEMCPY_PEER:
      if (kind_enabled(CUPTI_ACTIVITY_KIND_MEMCPY2, w.context)) peer_copy_record(w);
      return;
    default:
      if (kind_enabled(CUPTI_ACTIVITY_KIND_MEMCPY, w.context)) copy_record(w);
  }
}

void emit_graph_record(const Call& c, Placed at) {
  CUpti_ActivityGraphTrace2 r{};
  r.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
  r.correlationId = c.correlation;
  r.start = at.start, r.end = at.end;
  r.deviceId = r.endDeviceId = c.context->device;
  r.contextId = r.endContextId = c.context->id;
  r.graphId = c.op.graph_id;
  r.streamId = c.stream;
  emit(&r, sizeof r, at.end);
}

}  // namespace sim
