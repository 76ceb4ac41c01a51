#include "collect/record_decoder.h"

#include <cstring>

#include "collect/region_tracker.h"
#include "cupti/api.h"
#include "cupti/records.h"
#include "filter/kernel_filter.h"

namespace cuptiprof {
namespace {

constexpr size_t kNameEntries = 1024;
constexpr size_t kConfigEntries = 1024;

// The bytes of a kernel record that make up its launch configuration, gathered so that one comparison tells whether it
// is one already seen. Offsets are asserted in cupti/abi_check.cpp.
struct ConfigKey {
  uint64_t words[13];
};

inline ConfigKey config_key(const CUpti_ActivityKernel10& k, bool has_device_launched) {
  ConfigKey key;
  key.words[12] = 0;
  const char* from = reinterpret_cast<const char*>(&k);
  char* to = reinterpret_cast<char*>(key.words);
  std::memcpy(to, from + 4, 12);         // caches, registers, partitioned cache
  std::memcpy(to + 12, from + 52, 40);   // grid, block, shared and local memory
  std::memcpy(to + 52, from + 136, 8);   // launch type, carve-out, shared memory executed
  std::memcpy(to + 60, from + 152, 4);   // shared memory limit configuration
  std::memcpy(to + 64, from + 176, 32);  // cluster, local memory total
  if (has_device_launched) to[96] = static_cast<char>(k.isDeviceLaunched);
  return key;
}

rows::launch_configs config_of(const CUpti_ActivityKernel10& k, bool has_device_launched) {
  rows::launch_configs c;
  c.grid_x = k.gridX, c.grid_y = k.gridY, c.grid_z = k.gridZ;
  c.block_x = k.blockX, c.block_y = k.blockY, c.block_z = k.blockZ;
  c.cluster_x = k.clusterX, c.cluster_y = k.clusterY, c.cluster_z = k.clusterZ;
  c.cluster_scheduling_policy = k.clusterSchedulingPolicy;
  c.max_potential_cluster_size = k.maxPotentialClusterSize;
  c.max_active_clusters = k.maxActiveClusters;
  c.registers_per_thread = k.registersPerThread;
  c.static_shared_memory = k.staticSharedMemory;
  c.dynamic_shared_memory = k.dynamicSharedMemory;
  c.shared_memory_executed = k.sharedMemoryExecuted;
  c.local_memory_per_thread = k.localMemoryPerThread;
  c.local_memory_total = k.localMemoryTotal_v2 ? k.localMemoryTotal_v2 : k.localMemoryTotal;
  c.cache_config = k.cacheConfig.both;
  c.shared_memory_config = k.sharedMemoryConfig;
  c.shared_memory_carveout = k.isSharedMemoryCarveoutRequested ? k.sharedMemoryCarveoutRequested : 255;
  c.shmem_limit_config = static_cast<uint8_t>(k.shmemLimitConfig);
  c.partitioned_global_cache = static_cast<uint8_t>((static_cast<unsigned>(k.partitionedGlobalCacheRequested) & 15) |
                                                    static_cast<unsigned>(k.partitionedGlobalCacheExecuted) << 4);
  c.launch_type = k.launchType;
  c.device_launched = has_device_launched ? k.isDeviceLaunched : 0;
  return c;
}

}  // namespace

RecordDecoder::RecordDecoder(const Api& api, RegionTracker& regions, const CorrelationMap& calls, Losses& losses,
                             std::shared_ptr<const KernelFilter> filter)
    : x_api(api),
      x_regions(regions),
      x_calls(calls),
      x_losses(losses),
      x_filter(std::move(filter)),
      x_version(static_cast<uint32_t>(api.version)),
      x_names(kNameEntries),
      x_configs(kConfigEntries) {}

RecordDecoder::~RecordDecoder() = default;

void RecordDecoder::forget_string_ids() {
  for (auto& n : x_names) n = {};
  for (auto& c : x_configs) c.valid = false;
  for (auto& names : x_api_names) names.clear();
}

void RecordDecoder::decode(Store& store, uint8_t* data, size_t valid_bytes) {
  CUpti_Activity* record = nullptr;
  for (;;) {
    const CUptiResult rc = x_api.cuptiActivityGetNextRecord(data, valid_bytes, &record);
    if (rc != CUPTI_SUCCESS) {
      // Anything but "no more" leaves the rest of the buffer unreadable; how much that is nobody knows.
      if (rc != CUPTI_ERROR_MAX_LIMIT_REACHED) count(x_losses.unknown_records);
      return;
    }
    switch (record->kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      case CUPTI_ACTIVITY_KIND_KERNEL:
        kernel(store, record);
        break;
      case CUPTI_ACTIVITY_KIND_RUNTIME:
      case CUPTI_ACTIVITY_KIND_DRIVER:
        api_call(store, record);
        break;
      case CUPTI_ACTIVITY_KIND_MEMCPY:
        memcpy_record(store, record);
        break;
      case CUPTI_ACTIVITY_KIND_MEMCPY2:
        peer_memcpy(store, record);
        break;
      case CUPTI_ACTIVITY_KIND_MEMSET:
        memset_record(store, record);
        break;
      case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
        synchronization(store, record);
        break;
      case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
        cuda_event(store, record);
        break;
      case CUPTI_ACTIVITY_KIND_MEMORY2:
        memory(store, record);
        break;
      case CUPTI_ACTIVITY_KIND_MEMORY_POOL:
        memory_pool(store, record);
        break;
      case CUPTI_ACTIVITY_KIND_OVERHEAD:
        overhead(store, record);
        break;
      case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
        graph_launch(store, record);
        break;
      case CUPTI_ACTIVITY_KIND_CONTEXT:
        context(store, record);
        break;
      case CUPTI_ACTIVITY_KIND_STREAM:
        stream(store, record);
        break;
      case CUPTI_ACTIVITY_KIND_DEVICE:
        device(store, record);
        break;
      case CUPTI_ACTIVITY_KIND_MARKER:
        marker(store, record);
        break;
      case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
        break;  // ours are joined through launch events; another tool's are not for us
      default:
        count(x_losses.unknown_records);
    }
  }
}

bool RecordDecoder::valid_times(uint64_t start, uint64_t end) {
  if (start != 0 && end >= start) return true;
  count(x_losses.invalid_timestamps);
  return false;
}

RecordDecoder::NameEntry& RecordDecoder::name_entry(Store& store, const char* name) {
  if (!name) name = "";
  const auto address = reinterpret_cast<uintptr_t>(name);
  NameEntry& e = x_names[(address >> 3 ^ address >> 13) & (kNameEntries - 1)];
  // The text is compared too: a module may have been unloaded and its memory given to another name.
  if (e.pointer == name && std::strcmp(store.strings().c_str(e.id), name) == 0) return e;
  e.pointer = name;
  e.id = store.strings().intern(name);
  e.selected = !x_filter || x_filter->matches_name(store.strings().at(e.id));
  return e;
}

uint32_t RecordDecoder::config_id(Store& store, const CUpti_Activity* record, uint32_t name) {
  const auto& k = *reinterpret_cast<const CUpti_ActivityKernel10*>(record);
  const bool newer = x_version >= kKernelHasDeviceLaunched;
  const ConfigKey key = config_key(k, newer);
  const uint32_t hash = (name * 2654435761u) ^ (static_cast<uint32_t>(k.gridX) * 40503u) ^
                        (static_cast<uint32_t>(k.gridY) << 7) ^ (static_cast<uint32_t>(k.blockX) << 3);
  ConfigEntry& e = x_configs[(hash ^ hash >> 15) & (kConfigEntries - 1)];
  if (e.valid && std::memcmp(e.key, &key, sizeof key) == 0) return e.id;
  e.id = store.config_id(config_of(k, newer));
  std::memcpy(e.key, &key, sizeof key);
  e.valid = true;
  return e.id;
}

void RecordDecoder::kernel(Store& store, const CUpti_Activity* record) {
  const auto& k = *reinterpret_cast<const CUpti_ActivityKernel10*>(record);
  const bool from_device =
      k.launchType == CUPTI_ACTIVITY_LAUNCH_TYPE_CBL_COMMANDLIST ||
      (x_version >= kKernelHasDeviceLaunched && k.isDeviceLaunched != 0);
  if (k.graphNodeId == 0 && !from_device)
    x_kernels_received.store(x_kernels_received.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (!valid_times(k.start, k.end)) return;
  const NameEntry& name = name_entry(store, k.name);
  if (!name.selected) {
    count(x_losses.filter_rejected);
    return;
  }
  rows::kernels row;
  row.start = static_cast<int64_t>(k.start);
  row.end = static_cast<int64_t>(k.end);
  row.queued = static_cast<int64_t>(k.queued);
  row.submitted = static_cast<int64_t>(k.submitted);
  row.completed = static_cast<int64_t>(k.completed);
  row.graph_node_id = k.graphNodeId;
  row.name = name.id;
  row.correlation_id = k.correlationId;
  row.device = k.deviceId;
  row.context = k.contextId;
  row.stream = k.streamId;
  row.graph_id = k.graphId;
  row.channel_id = k.channelID;
  row.channel_type = static_cast<uint8_t>(k.channelType);
  attribute(store, row, k.correlationId, !from_device);
  row.config = config_id(store, record, name.id);
  store.append(row);
}

}  // namespace cuptiprof
