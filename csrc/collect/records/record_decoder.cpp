#include "collect/records/record_decoder.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>

#include "base/clock.h"
#include "collect/records/kernel_names.h"
#include "collect/regions/region_paths.h"
#include "collect/regions/region_tracker.h"
#include "collect/regions/scope_labels.h"
#include "cupti/api.h"
#include "cupti/record_versions.h"
#include "filter/kernel_filter.h"
#include "filter/open_ranges.h"
#include "filter/stack_lines.h"
#include "threads/scope_trie.h"

namespace cuptiprof {
namespace {

constexpr size_t kAheadBytes = 1024;
constexpr size_t kNameEntries = 1024;
constexpr size_t kConfigEntries = 1024;  // 2^10: the index is the top ten bits of a product
const char* const kNoName = reinterpret_cast<const char*>(1);  // no string lies there

// The bytes of a kernel record that make up its launch configuration, as kConfigWords words of 8 bytes: one
// comparison then tells whether it is one already seen. A word is named by its first field; the offsets that
// make the others follow are asserted in cupti/abi_check.cpp.
[[gnu::always_inline]] inline void for_each_config_word(const CUpti_ActivityKernel10& k, bool newer,
                                                        auto&& visit) {
  using K = CUpti_ActivityKernel10;
  const char* record = reinterpret_cast<const char*>(&k);
  auto word = [record](size_t offset) {
    uint64_t w;
    std::memcpy(&w, record + offset, sizeof w);
    return w;
  };
  auto half = [record](size_t offset) {
    uint32_t w;
    std::memcpy(&w, record + offset, sizeof w);
    return uint64_t{w};
  };
  visit(0, word(offsetof(K, partitionedGlobalCacheRequested)));                          // and executed
  visit(1, half(offsetof(K, cacheConfig)) | half(offsetof(K, shmemLimitConfig)) << 32);  // and registers
  visit(2, word(offsetof(K, gridX)));                                                    // and gridY
  visit(3, word(offsetof(K, gridZ)));                                                    // and blockX
  visit(4, word(offsetof(K, blockY)));                                                   // and blockZ
  visit(5, word(offsetof(K, staticSharedMemory)));                                       // and dynamic
  visit(6, word(offsetof(K, localMemoryPerThread)));                                     // and total
  visit(7, word(offsetof(K, launchType)));  // and carve-out, shared memory executed
  visit(8, word(offsetof(K, clusterX)));    // and clusterY
  visit(9, word(offsetof(K, clusterZ)));    // and scheduling policy
  visit(10, word(offsetof(K, localMemoryTotal_v2)));
  visit(11, word(offsetof(K, maxPotentialClusterSize)));  // and maxActiveClusters
  visit(12, newer ? uint64_t{k.isDeviceLaunched} : 0);
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
  c.partitioned_global_cache =
      static_cast<uint8_t>((static_cast<unsigned>(k.partitionedGlobalCacheRequested) & 15) |
                           static_cast<unsigned>(k.partitionedGlobalCacheExecuted) << 4);
  c.launch_type = k.launchType;
  c.device_launched = has_device_launched ? k.isDeviceLaunched : 0;
  return c;
}

// Clocks of CPU and GPU are laid over each other with less error than this. 0: never a time.
constexpr int64_t kSlackBefore = 10'000'000'000, kSlackAfter = 1'000'000'000;

// A clock that is not ours may step, or not go on while work does.
bool is_our_clock() { return g_clock_source.load(std::memory_order_relaxed) == nullptr; }

uint64_t earliest_time() {
  return is_our_clock() ? static_cast<uint64_t>(std::max<int64_t>(monotonic_ns() - kSlackBefore, 1)) : 1;
}

}  // namespace

RecordDecoder::RecordDecoder(const SubscriberCalls& cupti, RegionTracker& regions,
                             const CorrelationMap& calls, Losses& losses, Options options)
    : x_cupti(cupti),
      x_api(cupti.api()),
      x_regions(regions),
      x_calls(calls),
      x_losses(losses),
      x_filter(std::move(options.filter)),
      x_version(static_cast<uint32_t>(x_api.version)),
      x_follows_launches(options.follows_launches),
      x_live(options.live),
      x_earliest(x_live ? earliest_time() : 1),
      x_names(kNameEntries),
      x_configs(kConfigEntries) {
  if (x_filter) {
    const FilterSpec& s = x_filter->spec();
    x_filter_looks_further = x_filter->needs_regions() || x_filter->needs_lines() ||
                             !x_filter->ids().empty() || !s.devices.empty() || !s.contexts.empty() ||
                             !s.streams.empty() || !s.threads.empty() || !s.steps.empty() || s.grid ||
                             s.block;
  }
  forget_names();
}

RecordDecoder::~RecordDecoder() = default;

void RecordDecoder::forget_string_ids() {
  forget_names();
  x_scope_texts.forget_string_ids();
  x_start_end_texts.clear();
  for (auto& c : x_configs) c.valid = false;
  for (auto& names : x_api_names) names.clear();
}

void RecordDecoder::forget_scopes() {
  x_scope_texts.forget_string_ids();
  x_start_end_texts.clear();
  x_range_verdicts.clear();
}

void RecordDecoder::decode(Store& store, uint8_t* data, size_t valid_bytes) {
  // An unload waits until what was completed before it is decoded, so that it does not happen on the way.
  if (const uint32_t epoch = g_kernel_names.epoch(); epoch != x_names_epoch) {
    x_names_epoch = epoch;
    forget_names();
  }
  if (x_live && is_our_clock()) x_latest = static_cast<uint64_t>(monotonic_ns() + kSlackAfter);
  CUpti_Activity* record = nullptr;
  try {
    decode_records(store, record, data, valid_bytes);
  } catch (const std::bad_alloc&) {
    count(x_losses.out_of_memory);  // the record at hand
    skip_after(record, data, valid_bytes);
    throw;
  }
}

inline void RecordDecoder::decode_records(Store& store, CUpti_Activity*& at, uint8_t* data,
                                          size_t valid_bytes) {
  for (CUpti_Activity* record = nullptr;;) {
    const CUptiResult rc = x_cupti.next_record(data, valid_bytes, &record);
    if (rc != CUPTI_SUCCESS) {
      // Anything but "no more" leaves the rest of the buffer unreadable; how much that is nobody knows.
      if (rc != CUPTI_ERROR_MAX_LIMIT_REACHED) count(x_losses.unknown_records);
      break;
    }
    // Whole records are read here, the library itself looks at their first bytes only.
    const char* ahead = reinterpret_cast<const char*>(record) + kAheadBytes;
    for (size_t line = 0; line < 4; ++line) __builtin_prefetch(ahead + line * kCacheLine);
    at = record;
    decode_record(store, record);
  }
}

void RecordDecoder::skip_after(CUpti_Activity* record, uint8_t* data, size_t valid_bytes) noexcept {
  while (x_cupti.next_record(data, valid_bytes, &record) == CUPTI_SUCCESS) {
    count(x_losses.out_of_memory);
    if (const uint64_t node = graph_node_of(record); node != 0) {
      if (GraphTracker* graphs = x_regions.graphs()) graphs->received(node, 0, 0);
    } else if (is_kernel(record) &&
               !launched_by_device(*reinterpret_cast<const CUpti_ActivityKernel10*>(record))) {
      count(x_kernels_received);
    }
  }
}

uint64_t RecordDecoder::records_in(uint8_t* data, size_t valid_bytes) const noexcept {
  CUpti_Activity* record = nullptr;
  uint64_t n = 0;
  while (x_cupti.next_record(data, valid_bytes, &record) == CUPTI_SUCCESS) ++n;
  return n;
}

[[gnu::always_inline]] inline void RecordDecoder::decode_record(Store& store, CUpti_Activity* record) {
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
    case CUPTI_ACTIVITY_KIND_ENVIRONMENT:
      environment(store, record);
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
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      break;  // ours are joined through launch events; another tool's are not for us
    default:
      count(x_losses.unknown_records);
  }
}

// Outside of the session are times of another client's clock, and those that a change of clocks spoils.
bool RecordDecoder::valid_times(uint64_t start, uint64_t end) {
  if (start >= x_earliest && end >= start && end <= x_latest) [[likely]]
    return true;
  count(x_losses.invalid_timestamps);
  return false;
}

RecordDecoder::NameEntry& RecordDecoder::name_entry(Store& store, const char* name) {
  const auto address = reinterpret_cast<uintptr_t>(name);
  NameEntry& e = x_names[(address >> 3 ^ address >> 13) & (kNameEntries - 1)];
  if (e.pointer == name) [[likely]]
    return e;
  // CUPTI shares one string among all records of a kernel, so the pointer stands for the text until a module
  // is unloaded (forget_names). One may be unloaded meanwhile, so that what a launch showed is read where it
  // was copied to.
  const char* seen = x_live ? g_kernel_names.find_seen_in(name, x_names_epoch) : nullptr;
  fill(store, e, seen ? seen : name);
  e.pointer = name;
  return e;
}

void RecordDecoder::fill(Store& store, NameEntry& e, const char* text) {
  const std::string_view name = text ? text : "";
  e.id = store.text(name);
  store.note_kernel_name(e.id);
  if (x_filter) e.verdict = x_filter->name_verdict(NameParts(name));
}

// The launch came before the last unload: what the pointer leads to now may be gone, or another kernel's
// name.
const RecordDecoder::NameEntry& RecordDecoder::earlier_name(Store& store, const char* name, uint32_t epoch) {
  const auto [found, is_new] = x_earlier_names.try_emplace({name, epoch});
  if (is_new) {
    // What no launch ever showed at this address is CUPTI's own, which other profilers read at any time.
    const char* text = g_kernel_names.find(name, epoch);
    fill(store, found->second, text ? text : name);
  }
  return found->second;
}

// The filter's verdict on one kernel; name and region verdicts are kept, so most of this is comparing
// integers.
bool RecordDecoder::selected(const CUpti_ActivityKernel10& k, const NameVerdict& name) {
  const CallSite* site = x_calls.find(k.correlationId);
  bool region = true;  // and line
  if (x_filter->needs_regions()) {
    const uint32_t node = site ? site->node : 0;
    const uint32_t scopes = site && x_calls.with_origins() ? x_calls.origin(k.correlationId).scopes : 0;
    const uint32_t started = site && x_calls.with_start_end() ? x_calls.start_end(k.correlationId) : 0;
    const uint32_t in = site && x_calls.with_operators() ? x_calls.operator_at(k.correlationId).path : 0;
    const auto [found, is_new] =
        x_range_verdicts[uint64_t{started} << 32 | in].try_emplace(uint64_t{node} << 32 | scopes);
    if (is_new) {
      std::vector<ScopeLabel> beside = scope_labels(g_scope_trie.labels(scopes));
      for (ScopeLabel& label : scope_labels(g_scope_trie.labels(in))) beside.push_back(std::move(label));
      const OpenRanges open(scope_labels(x_regions.labels(node)), std::move(beside),
                            scope_labels(x_regions.start_end_labels(started)));
      found->second = x_filter->matches_ranges(open.view());
    }
    region = found->second;
  }
  if (region && x_filter->needs_lines()) {
    const uint32_t frame = site && x_calls.with_origins() ? x_calls.origin(k.correlationId).frame : 0;
    const auto [found, is_new] = x_line_verdicts.try_emplace(frame);
    if (is_new) found->second = x_filter->matches_lines(lines_of_stack(g_frame_tree.python_of(frame)));
    region = found->second;
  }
  LaunchView launch;
  launch.device = k.deviceId;
  launch.context = k.contextId;
  launch.stream = k.streamId;
  launch.thread = site ? site->thread : 0;
  launch.step = site ? site->step : 0;
  launch.grid = {k.gridX, k.gridY, k.gridZ};
  launch.block = {k.blockX, k.blockY, k.blockZ};
  launch.shared_memory = int64_t{k.staticSharedMemory} + k.dynamicSharedMemory;
  return x_filter->matches_stateless(launch, name, region);
}

uint32_t RecordDecoder::start_end_text(Store& store, uint32_t set) {
  if (set == 0) return 0;
  if (const uint32_t now = x_regions.start_end_generation(); now != x_start_end_generation) {
    x_start_end_generation = now;
    forget_scopes();
  }
  if (set == NvtxMarkers::kLostSet) return store.lost_text();
  const auto [found, is_new] = x_start_end_texts.try_emplace(set);
  if (is_new) found->second = store.text(nvtx_ranges(x_regions.start_end_labels(set), ','));
  return found->second;
}

void RecordDecoder::forget_names() {
  for (auto& n : x_names) n.pointer = kNoName;
  x_earlier_names.clear();
}

[[gnu::always_inline]] inline uint32_t RecordDecoder::config_id(Store& store, const CUpti_Activity* record) {
  const auto& k = *reinterpret_cast<const CUpti_ActivityKernel10*>(record);
  const bool newer = x_version >= kKernelHasDeviceLaunched;
  uint64_t grid_xy;
  std::memcpy(&grid_xy, &k.gridX, sizeof grid_xy);
  const uint64_t mix =
      (grid_xy ^ static_cast<uint64_t>(k.blockX) << 20 ^ static_cast<uint64_t>(k.registersPerThread) << 44 ^
       static_cast<uint64_t>(k.dynamicSharedMemory) << 11) *
      0x9E3779B97F4A7C15ull;
  ConfigEntry& e = x_configs[mix >> 54];
  uint64_t differs = !e.valid;
  for_each_config_word(k, newer, [&](size_t i, uint64_t w) { differs |= w ^ e.words[i]; });
  if (differs) [[unlikely]] {
    for_each_config_word(k, newer, [&](size_t i, uint64_t w) { e.words[i] = w; });
    e.id = store.config_id(config_of(k, newer));
    e.valid = true;
  }
  return e.id;
}

void RecordDecoder::kernel(Store& store, const CUpti_Activity* record) {
  const auto& k = *reinterpret_cast<const CUpti_ActivityKernel10*>(record);
  const bool from_device = launched_by_device(k);
  if (k.graphNodeId == 0 && !from_device)
    x_kernels_received.store(x_kernels_received.load(std::memory_order_relaxed) + 1,
                             std::memory_order_relaxed);
  uint32_t epoch = 0;
  const bool earlier =
      x_names_epoch != 0 && (epoch = g_kernel_names.epoch_of(k.correlationId)) < x_names_epoch;
  const NameEntry& name = earlier ? earlier_name(store, k.name, epoch) : name_entry(store, k.name);
  if (!name.verdict.accepted || (x_filter_looks_further && !selected(k, name.verdict))) {
    count(x_losses.filter_rejected);
    return;
  }
  rows::kernels row;
  set_work_times(row, k.start, k.end);
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
  attribute_capture(store, row, record, kKernelSourceNode);
  row.config = config_id(store, record);
  store.append(row);
}

}  // namespace cuptiprof
