// Records other than kernels.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "collect/records/record_decoder.h"
#include "cupti/api.h"
#include "cupti/cbids.h"
#include "cupti/record_versions.h"

namespace cuptiprof {
namespace {

template <typename T>
const T& as(const CUpti_Activity* record) {
  return *reinterpret_cast<const T*>(record);
}

template <typename Row>
void set_times(Row& row, uint64_t start, uint64_t end) {
  row.start = static_cast<int64_t>(start);
  row.end = static_cast<int64_t>(end);
}

// What plain and peer-to-peer copies have in common.
template <typename Record>
rows::memcpys copy_row(const Record& m) {
  rows::memcpys row;
  row.bytes = m.bytes;
  row.graph_node_id = m.graphNodeId;
  row.correlation_id = m.correlationId;
  row.device = m.deviceId;
  row.context = m.contextId;
  row.stream = m.streamId;
  row.graph_id = m.graphId;
  row.channel_id = m.channelID;
  row.copy_kind = m.copyKind;
  row.src_kind = m.srcKind;
  row.dst_kind = m.dstKind;
  row.is_async = (m.flags & CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC) != 0;
  row.channel_type = static_cast<uint8_t>(m.channelType);
  return row;
}

}  // namespace

void RecordDecoder::memcpy_record(Store& store, const CUpti_Activity* record) {
  const auto& m = as<CUpti_ActivityMemcpy6>(record);
  rows::memcpys row = copy_row(m);
  set_work_times(row, m.start, m.end);
  row.copy_count = x_version >= kMemcpyHasCopyCount ? m.copyCount : 0;
  row.src_device = row.dst_device = m.deviceId;
  row.src_context = row.dst_context = m.contextId;
  attribute(store, row, m.correlationId, true);
  attribute_capture(store, row, record, kMemcpySourceNode);
  store.append(row);
}

void RecordDecoder::peer_memcpy(Store& store, const CUpti_Activity* record) {
  const auto& m = as<CUpti_ActivityMemcpyPtoP4>(record);
  rows::memcpys row = copy_row(m);
  set_work_times(row, m.start, m.end);
  row.src_device = m.srcDeviceId;
  row.src_context = m.srcContextId;
  row.dst_device = m.dstDeviceId;
  row.dst_context = m.dstContextId;
  row.is_peer = 1;
  attribute(store, row, m.correlationId, true);
  attribute_capture(store, row, record, kNoSourceNode);
  store.append(row);
}

void RecordDecoder::memset_record(Store& store, const CUpti_Activity* record) {
  const auto& m = as<CUpti_ActivityMemset4>(record);
  rows::memsets row;
  set_work_times(row, m.start, m.end);
  row.bytes = m.bytes;
  row.graph_node_id = m.graphNodeId;
  row.value = m.value;
  row.correlation_id = m.correlationId;
  row.device = m.deviceId;
  row.context = m.contextId;
  row.stream = m.streamId;
  row.graph_id = m.graphId;
  row.channel_id = m.channelID;
  row.memory_kind = static_cast<uint8_t>(m.memoryKind);
  row.is_async = (m.flags & CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC) != 0;
  row.channel_type = static_cast<uint8_t>(m.channelType);
  attribute(store, row, m.correlationId, true);
  attribute_capture(store, row, record, kMemsetSourceNode);
  store.append(row);
}

void RecordDecoder::api_call(Store& store, const CUpti_Activity* record) {
  const auto& a = as<CUpti_ActivityAPI>(record);
  if (!valid_times(a.start, a.end)) return;
  const bool driver = a.kind == CUPTI_ACTIVITY_KIND_DRIVER;
  auto& names = x_api_names[driver];
  if (a.cbid >= names.size()) names.resize(std::min<size_t>(a.cbid, 1 << 16) + 1, 0);
  uint32_t& known = names[std::min<size_t>(a.cbid, 1 << 16)];
  if (known == 0) {
    const char* name = nullptr;
    const auto domain = driver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API;
    if (x_api.cuptiGetCallbackName(domain, a.cbid, &name) != CUPTI_SUCCESS || !name)
      known = store.text((driver ? "driver call " : "runtime call ") + std::to_string(a.cbid)) + 1;
    else
      known = store.text(base_name(name)) + 1;
  }
  rows::api_calls row;
  set_times(row, a.start, a.end);
  row.name = known - 1;
  row.correlation_id = a.correlationId;
  row.cbid = a.cbid;
  row.process = a.processId;
  row.thread = a.threadId;
  row.return_value = a.returnValue;
  row.domain = driver;
  attribute(store, row, a.correlationId, false);
  store.append(row);
}

void RecordDecoder::synchronization(Store& store, const CUpti_Activity* record) {
  const auto& s = as<CUpti_ActivitySynchronization2>(record);
  if (!valid_times(s.start, s.end)) return;
  rows::synchronizations row;
  set_times(row, s.start, s.end);
  row.correlation_id = s.correlationId;
  row.context = s.contextId;
  row.stream = s.streamId;
  row.event = s.cudaEventId;
  if (x_version >= kSyncHasReturnValue) {
    row.event_sync_id = s.cudaEventSyncId;
    row.return_value = s.returnValue;
  }
  row.type = static_cast<uint8_t>(s.type);
  store.append(row);
}

void RecordDecoder::cuda_event(Store& store, const CUpti_Activity* record) {
  const auto& e = as<CUpti_ActivityCudaEvent2>(record);
  rows::cuda_events row;
  row.event = e.eventId;
  row.correlation_id = e.correlationId;
  row.context = e.contextId;
  row.stream = e.streamId;
  if (x_version >= kSyncHasReturnValue) {  // CUpti_ActivityCudaEvent2 came with it
    row.device = e.deviceId;
    row.device_timestamp = static_cast<int64_t>(e.deviceTimestamp);
    row.event_sync_id = e.cudaEventSyncId;
  }
  store.append(row);
}

void RecordDecoder::memory(Store& store, const CUpti_Activity* record) {
  const auto& m = as<CUpti_ActivityMemory4>(record);
  rows::memory row;
  row.timestamp = static_cast<int64_t>(m.timestamp);
  row.address = m.address;
  row.bytes = m.bytes;
  row.pc = m.PC;
  row.pool_type = static_cast<uint8_t>(m.memoryPoolConfig.memoryPoolType);
  if (row.pool_type != CUPTI_ACTIVITY_MEMORY_POOL_TYPE_INVALID) {
    row.pool_address = m.memoryPoolConfig.address;
    row.pool_utilized = m.memoryPoolConfig.utilizedSize;
    if (row.pool_type == CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL) row.pool_size = m.memoryPoolConfig.pool.size;
  }
  row.name = text(store, m.name);
  row.correlation_id = m.correlationId;
  row.process = m.processId;
  row.device = m.deviceId;
  row.context = m.contextId;
  row.stream = m.streamId;
  row.operation = static_cast<uint8_t>(m.memoryOperationType);
  row.memory_kind = static_cast<uint8_t>(m.memoryKind);
  row.is_async = m.isAsync != 0;
  attribute(store, row, m.correlationId, false);
  store.append(row);
}

void RecordDecoder::memory_pool(Store& store, const CUpti_Activity* record) {
  const auto& m = as<CUpti_ActivityMemoryPool3>(record);
  rows::memory_pools row;
  row.timestamp = static_cast<int64_t>(m.timestamp);
  row.address = m.address;
  row.size = m.size;
  row.release_threshold = m.releaseThreshold;
  row.utilized = m.utilizedSize;
  row.min_bytes_to_keep = m.minBytesToKeep;
  row.correlation_id = m.correlationId;
  row.process = m.processId;
  row.device = m.deviceId;
  row.operation = static_cast<uint8_t>(m.memoryPoolOperationType);
  row.pool_type = static_cast<uint8_t>(m.memoryPoolType);
  attribute(store, row, m.correlationId, false);
  store.append(row);
}

void RecordDecoder::overhead(Store& store, const CUpti_Activity* record) {
  const auto& o = as<CUpti_ActivityOverhead3>(record);
  // Ours to free, in all releases. Of the other kinds nobody says that the field is written at all.
  if (x_live && o.overheadKind == CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL) std::free(o.overheadData);
  if (!valid_times(o.start, o.end)) return;
  rows::overhead row;
  set_times(row, o.start, o.end);
  row.correlation_id = o.correlationId;
  row.kind = static_cast<uint32_t>(o.overheadKind);
  if (o.objectKind == CUPTI_ACTIVITY_OBJECT_PROCESS || o.objectKind == CUPTI_ACTIVITY_OBJECT_THREAD) {
    row.process = o.objectId.pt.processId;
    row.thread = o.objectId.pt.threadId;
  }
  store.append(row);
}

// As what NVML reads of the same (cuptiprof/data/system_counters.py), of which the decoder knows the names.
void RecordDecoder::environment(Store& store, const CUpti_Activity* record) {
  const auto& e = as<CUpti_ActivityEnvironment>(record);
  if (!valid_times(e.timestamp, e.timestamp)) return;
  const auto put = [&](const char* counter, double value) {
    rows::system_samples row;
    row.timestamp = static_cast<int64_t>(e.timestamp);
    row.value = value;
    row.counter = store.text(counter);
    row.device = static_cast<int32_t>(e.deviceId);
    store.append(row);
  };
  switch (e.environmentKind) {
    case CUPTI_ACTIVITY_ENVIRONMENT_SPEED: {
      put("sm_clock", e.data.speed.smClock);
      put("memory_clock", e.data.speed.memoryClock);
      put("pcie_generation", e.data.speed.pcieLinkGen);
      put("pcie_width", e.data.speed.pcieLinkWidth);
      // The bits have no names among NVML's: nobody knows the reasons, or the GPU does not tell.
      constexpr uint32_t none =
          CUPTI_CLOCKS_THROTTLE_REASON_UNKNOWN | CUPTI_CLOCKS_THROTTLE_REASON_UNSUPPORTED;
      const auto reasons = static_cast<uint32_t>(e.data.speed.clocksThrottleReasons);
      if ((reasons & none) == 0) put("clock_reasons", reasons);
      return;
    }
    case CUPTI_ACTIVITY_ENVIRONMENT_TEMPERATURE:
      put("temperature", e.data.temperature.gpuTemperature);
      return;
    case CUPTI_ACTIVITY_ENVIRONMENT_POWER:  // in mW
      put("power", e.data.power.power / 1000.0);
      put("power_limit", e.data.power.powerLimit / 1000.0);
      return;
    case CUPTI_ACTIVITY_ENVIRONMENT_COOLING:
      put("fan", e.data.cooling.fanSpeed);
      return;
    default:
      count(x_losses.unknown_records);
  }
}

void RecordDecoder::graph_launch(Store& store, const CUpti_Activity* record) {
  const auto& g = as<CUpti_ActivityGraphTrace2>(record);
  rows::graph_launches row;
  set_work_times(row, g.start, g.end);
  row.correlation_id = g.correlationId;
  row.graph_id = g.graphId;
  row.device = g.deviceId;
  row.context = g.contextId;
  row.stream = g.streamId;
  attribute(store, row, g.correlationId, true);
  store.append(row);
}

void RecordDecoder::context(Store& store, const CUpti_Activity* record) {
  const auto& c = as<CUpti_ActivityContext3>(record);
  if (!x_resources.is_new_context(c.contextId)) return;
  rows::contexts row;
  row.context = c.contextId;
  row.device = c.deviceId;
  row.null_stream = c.nullStreamId;
  if (x_version >= kContextHasGreen) {
    row.parent = c.parentContextId;
    row.is_green = c.isGreenContext;
    row.num_multiprocessors = c.isGreenContext ? c.numMultiprocessors : 0;
  }
  store.append(row);
}

void RecordDecoder::stream(Store& store, const CUpti_Activity* record) {
  const auto& s = as<CUpti_ActivityStream>(record);
  if (!x_resources.is_new_stream(s.contextId, s.streamId)) return;
  rows::streams row;
  row.context = s.contextId;
  row.stream = s.streamId;
  row.priority = static_cast<int32_t>(s.priority);
  row.flag = static_cast<uint32_t>(s.flag);
  row.correlation_id = s.correlationId;
  store.append(row);
}

void RecordDecoder::device(Store& store, const CUpti_Activity* record) {
  const auto& d = as<CUpti_ActivityDevice5>(record);
  // Devices that CUDA does not see have IDs of their own kind, and no work.
  if (d.isCudaVisible && x_resources.is_new_device(d.id)) store.append(device_row(store, d));
  // From 13.0 on each record brings a name of its own.
  if (x_live && x_version >= kDeviceNameIsOurs) std::free(const_cast<char*>(d.name));
}

rows::devices RecordDecoder::device_row(Store& store, const CUpti_ActivityDevice5& d) {
  rows::devices row;
  row.device = d.id;
  row.name = text(store, d.name);
  row.compute_capability_major = d.computeCapabilityMajor;
  row.compute_capability_minor = d.computeCapabilityMinor;
  row.num_multiprocessors = d.numMultiprocessors;
  row.threads_per_warp = d.numThreadsPerWarp;
  row.max_threads_per_block = d.maxThreadsPerBlock;
  row.max_warps_per_multiprocessor = d.maxWarpsPerMultiprocessor;
  row.max_blocks_per_multiprocessor = d.maxBlocksPerMultiprocessor;
  row.max_registers_per_multiprocessor = d.maxRegistersPerMultiprocessor;
  row.max_registers_per_block = d.maxRegistersPerBlock;
  row.max_shared_memory_per_multiprocessor = d.maxSharedMemoryPerMultiprocessor;
  row.max_shared_memory_per_block = d.maxSharedMemoryPerBlock;
  row.max_block_dim_x = d.maxBlockDimX;
  row.max_block_dim_y = d.maxBlockDimY;
  row.max_block_dim_z = d.maxBlockDimZ;
  row.max_grid_dim_x = d.maxGridDimX;
  row.max_grid_dim_y = d.maxGridDimY;
  row.max_grid_dim_z = d.maxGridDimZ;
  row.core_clock_rate = d.coreClockRate;
  row.num_memcpy_engines = d.numMemcpyEngines;
  row.max_ipc = d.maxIPC;
  row.l2_cache_size = d.l2CacheSize;
  row.constant_memory_size = d.constantMemorySize;
  row.global_memory_size = d.globalMemorySize;
  row.global_memory_bandwidth = d.globalMemoryBandwidth;
  row.ecc_enabled = d.eccEnabled;
  row.is_mig = d.isMigEnabled;
  return row;
}

}  // namespace cuptiprof
