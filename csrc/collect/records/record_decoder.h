// One completed activity buffer -> rows. Used by the decoder thread only, but for the counts at the end of
// the public part, which anybody may read.
#pragma once
#include <cupti_activity.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collect/records/known_resources.h"
#include "collect/regions/correlation_map.h"
#include "collect/regions/frame_texts.h"
#include "collect/regions/region_tracker.h"
#include "collect/regions/scope_texts.h"
#include "cupti/record_versions.h"
#include "cupti/subscriber_calls.h"
#include "filter/kernel_filter.h"
#include "store/store.h"
#include "threads/frame_tree.h"

namespace cuptiprof {

class RecordDecoder {
 public:
  struct Options {
    std::shared_ptr<const KernelFilter> filter;  // null: keep every kernel
    // Work without a launch that was seen is counted as an orphan.
    bool follows_launches = true;
    // Records come from CUPTI now, in this session, with what is to be freed; else from a file.
    bool live = false;
  };
  RecordDecoder(const SubscriberCalls& cupti, RegionTracker& regions, const CorrelationMap& calls,
                Losses& losses, Options options);

  ~RecordDecoder();

  // Throws std::bad_alloc when memory runs out; what then has no row is counted.
  void decode(Store& store, uint8_t* data, size_t valid_bytes);
  // Counts the records as lost for want of memory.
  void skip(uint8_t* data, size_t valid_bytes) noexcept { skip_after(nullptr, data, valid_bytes); }
  uint64_t records_in(uint8_t* data, size_t valid_bytes) const noexcept;
  // A new store has its own strings and configurations.
  void forget_string_ids();
  // Numbers of scopes are others (RegionTracker::age_scopes).
  void forget_scopes();

  // A new result starts, which has devices, contexts and streams of its own.
  void forget_resources() { x_resources.forget(); }
  // Devices that CUDA knows and no record described.
  void add_missing_devices(Store& store) { x_resources.add_missing_devices(x_api, store); }

  // Records of GPU work whose times CUPTI could not give.
  uint64_t without_times() const { return x_without_times.load(std::memory_order_relaxed); }
  // Kernel records that came, graph nodes not counted: what launches are reconciled with.
  uint64_t kernels_received() const { return x_kernels_received.load(std::memory_order_relaxed); }

 private:
  struct NameEntry {
    const char* pointer = nullptr;
    uint32_t id = 0;
    NameVerdict verdict;  // the filter's
  };
  static constexpr size_t kConfigWords = 13;
  struct ConfigEntry {
    uint64_t words[kConfigWords] = {};
    uint32_t id = 0;
    bool valid = false;
  };

  void decode_record(Store& store, CUpti_Activity* record);
  void skip_after(CUpti_Activity* record, uint8_t* data, size_t valid_bytes) noexcept;
  // `at`: the record at hand, for whoever catches what this throws.
  void decode_records(Store& store, CUpti_Activity*& at, uint8_t* data, size_t valid_bytes);
  bool launched_by_device(const CUpti_ActivityKernel10& k) const noexcept {
    return k.launchType == CUPTI_ACTIVITY_LAUNCH_TYPE_CBL_COMMANDLIST ||
           (x_version >= kKernelHasDeviceLaunched && k.isDeviceLaunched != 0);
  }
  void kernel(Store& store, const CUpti_Activity* record);
  void memcpy_record(Store& store, const CUpti_Activity* record);
  void peer_memcpy(Store& store, const CUpti_Activity* record);
  void memset_record(Store& store, const CUpti_Activity* record);
  void api_call(Store& store, const CUpti_Activity* record);
  void synchronization(Store& store, const CUpti_Activity* record);
  void cuda_event(Store& store, const CUpti_Activity* record);
  void memory(Store& store, const CUpti_Activity* record);
  void memory_pool(Store& store, const CUpti_Activity* record);
  void overhead(Store& store, const CUpti_Activity* record);
  void environment(Store& store, const CUpti_Activity* record);
  void graph_launch(Store& store, const CUpti_Activity* record);
  void context(Store& store, const CUpti_Activity* record);
  void stream(Store& store, const CUpti_Activity* record);
  void device(Store& store, const CUpti_Activity* record);
  rows::devices device_row(Store& store, const CUpti_ActivityDevice5& record);

  void forget_names();
  NameEntry& name_entry(Store& store, const char* name);
  const NameEntry& earlier_name(Store& store, const char* name, uint32_t epoch);
  void fill(Store& store, NameEntry& entry, const char* text);
  uint32_t config_id(Store& store, const CUpti_Activity* record);
  bool selected(const CUpti_ActivityKernel10& kernel, const NameVerdict& name);
  bool valid_times(uint64_t start, uint64_t end);
  // Times of GPU work, whose row is kept without any (0 and 0) where they are not to be had.
  template <typename Row>
  void set_work_times(Row& row, uint64_t start, uint64_t end);
  template <typename Row>
  void attribute(Store& store, Row& row, uint32_t correlation, bool count_orphan);
  template <typename Row>
  void set_origin(Store& store, Row& row, const LaunchOrigin& origin) {
    if (origin.scopes != 0) {
      const ScopeTexts::Columns columns = x_scope_texts.of(store, origin.scopes);
      if (columns.nvtx != 0) row.nvtx = columns.nvtx;
      row.operator_ = columns.operators;
      row.backward |= columns.backward;
    }
    if (origin.frame != 0) {
      row.stack = g_frame_tree.python_of(origin.frame);
      row.line = x_regions.frame_texts().line(store, row.stack);
      row.module = x_regions.frame_texts().module(store, g_frame_tree.module_of(origin.frame));
    }
  }
  template <typename Row>
  void set_operator(Store& store, Row& row, const OperatorSite& in) {
    if (in.instance == 0) return;
    row.operator_ = x_scope_texts.of(store, in.path).operators;
    row.operator_instance = in.instance;
    row.backward |= in.backward;
  }
  template <typename Row>
  void attribute_capture(Store& store, Row& row, const CUpti_Activity* record, size_t source_at);
  // ID among the strings of the store; 0: none is open.
  uint32_t start_end_text(Store& store, uint32_t set);
  uint32_t text(Store& store, const char* s) { return s ? store.text(s) : 0; }

  const SubscriberCalls x_cupti;
  const Api& x_api;
  RegionTracker& x_regions;
  const CorrelationMap& x_calls;
  Losses& x_losses;
  std::shared_ptr<const KernelFilter> x_filter;
  bool x_filter_looks_further = false;  // at more than the name
  const uint32_t x_version;
  const bool x_follows_launches;
  const bool x_live;
  KnownResources x_resources;
  std::atomic<uint64_t> x_kernels_received{0};
  std::atomic<uint64_t> x_without_times{0};
  // Times of records lie between these; looked at once a buffer.
  const uint64_t x_earliest;
  uint64_t x_latest = ~uint64_t{0};
  uint32_t x_names_epoch = 0;      // of the names in x_names
  std::vector<NameEntry> x_names;  // direct-mapped by pointer
  // Of launches before the last unload: by pointer and epoch.
  std::map<std::pair<const char*, uint32_t>, NameEntry> x_earlier_names;
  std::vector<ConfigEntry> x_configs;  // direct-mapped by name and grid
  // By number of the open start/end ranges << 32 | node of the operators, then by node of the path << 32 |
  // node of launch scopes.
  std::unordered_map<uint64_t, std::unordered_map<uint64_t, bool>> x_range_verdicts;
  std::unordered_map<uint32_t, bool> x_line_verdicts;  // by node of the stack
  std::array<std::vector<uint32_t>, 2> x_api_names;    // [domain][cbid] -> string ID + 1
  ScopeTexts x_scope_texts;
  uint32_t x_start_end_generation = 0;
  std::unordered_map<uint32_t, uint32_t>
      x_start_end_texts;  // string IDs by number of the open start/end ranges
};

template <typename Row>
inline void RecordDecoder::set_work_times(Row& row, uint64_t start, uint64_t end) {
  if (valid_times(start, end)) [[likely]] {
    row.start = static_cast<int64_t>(start);
    row.end = static_cast<int64_t>(end);
  } else if (start == 0 && end == 0) {
    count(x_without_times);
  }
}

// Region, instance and thread of the call that caused the record. api_calls carry their own thread.
template <typename Row>
inline void RecordDecoder::attribute(Store& store, Row& row, uint32_t correlation, bool count_orphan) {
  const CallSite* site = x_calls.find(correlation);
  if (site) {
    row.region = x_regions.path_id(store, site->node);
    row.region_instance = site->instance;
    if constexpr (requires { row.step; }) {
      row.step = site->step;
      if constexpr (requires { row.backward; }) row.backward = site->backward;
      row.nvtx = x_regions.nvtx_id(store, site->node);
      if (x_calls.with_start_end())
        row.nvtx_start_end = start_end_text(store, x_calls.start_end(correlation));
      if (x_calls.with_origins()) set_origin(store, row, x_calls.origin(correlation));
      if (x_calls.with_operators()) set_operator(store, row, x_calls.operator_at(correlation));
    }
    if constexpr (!std::is_same_v<Row, rows::api_calls>) row.thread = site->thread;
  } else if (count_orphan && x_follows_launches) {
    count(x_losses.orphan_correlations);
  }
}

// Work of a graph's node: where that was captured. `source_at`: where records of 13.4 say of which node the
// executable one was made.
template <typename Row>
inline void RecordDecoder::attribute_capture(Store& store, Row& row, const CUpti_Activity* record,
                                             size_t source_at) {
  GraphTracker* graphs = x_regions.graphs();
  if (row.graph_node_id == 0 || !graphs) return;
  uint64_t source = 0;
  if (x_version >= kWorkHasSourceNode && source_at != kNoSourceNode)
    std::memcpy(&source, reinterpret_cast<const char*>(record) + source_at, sizeof source);
  const CaptureSite* site = graphs->received(row.graph_node_id, source, row.correlation_id);
  if (!site) return;
  row.capture_known = 1;
  row.capture_region = x_regions.path_id(store, site->node);
  row.capture_region_instance = site->instance;
  const uint32_t scopes = site->origin.scopes;
  row.capture_nvtx =
      scopes != 0 ? x_scope_texts.of(store, scopes).nvtx : x_regions.nvtx_id(store, site->node);
  if (const uint32_t frame = g_frame_tree.python_of(site->origin.frame); frame != 0) {
    row.capture_line = x_regions.frame_texts().line(store, frame);
    row.capture_stack = frame;
  }
}

}  // namespace cuptiprof
