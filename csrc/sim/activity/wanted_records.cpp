#include "sim/activity/wanted_records.h"

#include <array>
#include <atomic>
#include <cstring>
#include <iterator>
#include <mutex>
#include <vector>

#include "sim/activity/buffers.h"
#include "sim/activity/clients.h"
#include "sim/activity/record_sizes.h"
#include "sim/activity/records.h"
#include "sim/machine/faults.h"
#include "sim/machine/machine.h"

namespace sim {
namespace {

constexpr size_t kMaxApiCbid = 1024;
// Who wants what.
std::atomic<ClientSet> g_kinds[kKinds];
std::atomic<ClientSet> g_api[2][kMaxApiCbid];  // by Api: calls whose records are wanted
auto& wanted_calls(Api api) { return g_api[static_cast<size_t>(api)]; }
std::atomic<ClientSet> g_latency{0};
std::atomic<ClientSet> g_event_times{0};
std::atomic<ClientSet> g_system_ids{0};

bool holds(const std::atomic<ClientSet>& clients, uint32_t who) {
  return (clients.load(std::memory_order_relaxed) & bit(who)) != 0;
}

struct ExternalIds {
  std::vector<uint64_t> stack[CUPTI_EXTERNAL_CORRELATION_KIND_SIZE];
};
thread_local ExternalIds t_external;

struct Attribute {
  size_t bytes;
  uint64_t value;
};
constexpr size_t kSize = sizeof(size_t);
// By CUpti_ActivityAttribute: sizes, and the values that cupti_activity.h names as defaults.
constexpr Attribute kDefaults[] = {
    {kSize, 3200000},   // DEVICE_BUFFER_SIZE
    {kSize, 8388608},   // DEVICE_BUFFER_SIZE_CDP
    {kSize, 250},       // DEVICE_BUFFER_POOL_LIMIT
    {kSize, 25000},     // PROFILING_SEMAPHORE_POOL_SIZE
    {kSize, 250},       // PROFILING_SEMAPHORE_POOL_LIMIT
    {1, 0},             // ZEROED_OUT_ACTIVITY_BUFFER
    {kSize, 3},         // DEVICE_BUFFER_PRE_ALLOCATE_VALUE
    {kSize, 3},         // PROFILING_SEMAPHORE_PRE_ALLOCATE_VALUE
    {1, 0},             // MEM_ALLOCATION_TYPE_HOST_PINNED
    {1, 1},             // PER_THREAD_ACTIVITY_BUFFER
    {kSize, 16777216},  // DEVICE_BUFFER_SIZE_DEVICE_GRAPHS
};
constexpr size_t kAttributes = std::size(kDefaults);
using Attributes = std::array<uint64_t, kAttributes>;
constexpr Attributes default_values() {
  Attributes out{};
  for (size_t i = 0; i < kAttributes; ++i) out[i] = kDefaults[i].value;
  return out;
}
std::mutex g_attribute_mutex;                            // guards the values
Attributes g_attributes[kClients] = {default_values()};  // of others than client 0: set when they join

bool valid_kind(CUpti_ActivityKind kind) { return stride(kind, Machine::get().version()) != 0; }

Api api_of(CUpti_ActivityKind kind) {
  return kind == CUPTI_ACTIVITY_KIND_DRIVER ? Api::kDriver : Api::kRuntime;
}

void set_api(uint32_t who, Api api, bool on) {
  for (auto& wanted : wanted_calls(api)) set(wanted, who, on);
}

}  // namespace

CUptiResult enable_api(uint32_t who, Api api, CUpti_CallbackId cbid, bool on) {
  const uint32_t version = Machine::get().version();
  if (cbid == 0 || cbid >= (api == Api::kDriver ? driver_cbids(version) : runtime_cbids(version)))
    return CUPTI_ERROR_INVALID_PARAMETER;
  set(wanted_calls(api)[cbid], who, on);
  return CUPTI_SUCCESS;
}

CUptiResult enable_kind(uint32_t who, CUpti_ActivityKind kind) {
  if (!valid_kind(kind)) return CUPTI_ERROR_INVALID_KIND;
  // Per-kernel serialisation and concurrent kernels exclude each other.
  if ((kind == CUPTI_ACTIVITY_KIND_KERNEL && kind_enabled(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) ||
      (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && kind_enabled(CUPTI_ACTIVITY_KIND_KERNEL)))
    return CUPTI_ERROR_NOT_COMPATIBLE;
  // One of several needs an attribute set first, which nobody here has.
  if (who != 0 && kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE) return CUPTI_ERROR_NOT_COMPATIBLE;
  // Overrides what was said call by call.
  if (kind == CUPTI_ACTIVITY_KIND_RUNTIME || kind == CUPTI_ACTIVITY_KIND_DRIVER)
    set_api(who, api_of(kind), true);
  set(g_kinds[kind], who, true);
  return CUPTI_SUCCESS;
}

CUptiResult enable_and_dump(uint32_t who, CUpti_ActivityKind kind) {
  const CUptiResult rc = enable_kind(who, kind);
  const OnlyFor asked(who);
  if (rc == CUPTI_SUCCESS) dump_existing(kind);
  return rc;
}

CUptiResult disable_kind(uint32_t who, CUpti_ActivityKind kind) {
  if (!valid_kind(kind)) return CUPTI_ERROR_INVALID_KIND;
  set(g_kinds[kind], who, false);
  if (kind == CUPTI_ACTIVITY_KIND_RUNTIME || kind == CUPTI_ACTIVITY_KIND_DRIVER)
    set_api(who, api_of(kind), false);
  return CUPTI_SUCCESS;
}

CUptiResult set_attribute(uint32_t who, CUpti_ActivityAttribute attribute, size_t* size, const void* value) {
  if (!size || !value || static_cast<size_t>(attribute) >= kAttributes) return CUPTI_ERROR_INVALID_PARAMETER;
  if (*size < kDefaults[attribute].bytes) return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
  uint64_t given = 0;
  std::memcpy(&given, value, kDefaults[attribute].bytes);
  if (attribute == CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER) set_per_thread_buffers(who, given != 0);
  if (attribute == CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER) set_cleared_by_client(who, given != 0);
  const std::lock_guard lock(g_attribute_mutex);
  g_attributes[who][attribute] = given;
  return CUPTI_SUCCESS;
}

CUptiResult get_attribute(uint32_t who, CUpti_ActivityAttribute attribute, size_t* size, void* value) {
  if (!size || !value || static_cast<size_t>(attribute) >= kAttributes) return CUPTI_ERROR_INVALID_PARAMETER;
  if (*size < kDefaults[attribute].bytes) return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
  const std::lock_guard lock(g_attribute_mutex);
  std::memcpy(value, &g_attributes[who][attribute], kDefaults[attribute].bytes);
  *size = kDefaults[attribute].bytes;
  return CUPTI_SUCCESS;
}

bool kind_enabled(CUpti_ActivityKind kind) { return g_kinds[kind].load(std::memory_order_relaxed) != 0; }
bool kind_enabled(CUpti_ActivityKind kind, uint32_t client) { return holds(g_kinds[kind], client); }

bool wants(uint32_t client, const CUpti_Activity* record) {
  if (record->kind != CUPTI_ACTIVITY_KIND_DRIVER && record->kind != CUPTI_ACTIVITY_KIND_RUNTIME)
    return holds(g_kinds[record->kind], client);
  const auto& calls = wanted_calls(api_of(record->kind));
  return holds(calls[reinterpret_cast<const CUpti_ActivityAPI*>(record)->cbid], client);
}

bool kind_enabled(CUpti_ActivityKind kind, const Context& c) {
  return kind_enabled(kind) || (c.kinds.load(std::memory_order_relaxed) >> kind & 1) != 0;
}

bool api_record_wanted(Api api, CUpti_CallbackId cbid) {
  return cbid < kMaxApiCbid && wanted_calls(api)[cbid].load(std::memory_order_relaxed) != 0;
}

bool latency_timestamps() { return g_latency.load(std::memory_order_relaxed) != 0; }
bool latency_timestamps(uint32_t client) { return holds(g_latency, client); }
void set_latency_timestamps(uint32_t client, bool on) { set(g_latency, client, on); }
bool device_event_timestamps() { return g_event_times.load(std::memory_order_relaxed) != 0; }
uint32_t this_thread_id() { return this_thread_id(system_thread_ids(0)); }
bool system_thread_ids(uint32_t client) { return holds(g_system_ids, client); }
void set_system_thread_ids(uint32_t client, bool on) { set(g_system_ids, client, on); }

bool activity_in_use() {
  for (auto& k : g_kinds)
    if (k.load() != 0) return true;
  for (auto& domain : g_api)
    for (auto& wanted : domain)
      if (wanted.load(std::memory_order_relaxed) != 0) return true;
  for (const Context* c : Machine::get().contexts())
    if (c->kinds.load() != 0) return true;
  return false;
}

void disable_activity(uint32_t who) {
  for (auto& k : g_kinds) set(k, who, false);
  set_api(who, Api::kRuntime, false);
  set_api(who, Api::kDriver, false);
  if (who != 0) return;
  for (Context* c : Machine::get().contexts()) c->kinds = 0;
}

void reset_activity_settings(uint32_t who) {
  {
    const std::lock_guard lock(g_attribute_mutex);
    g_attributes[who] = default_values();
  }
  set_per_thread_buffers(who, true);
  set_cleared_by_client(who, false);
  for (auto* setting : {&g_latency, &g_event_times, &g_system_ids}) set(*setting, who, false);
}

void emit_external_correlation(uint32_t correlation) {
  if (!kind_enabled(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)) return;
  for (int kind = 0; kind < CUPTI_EXTERNAL_CORRELATION_KIND_SIZE; ++kind) {
    const auto& stack = t_external.stack[kind];
    if (stack.empty()) continue;
    CUpti_ActivityExternalCorrelation r{};
    r.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    r.externalKind = static_cast<CUpti_ExternalCorrelationKind>(kind);
    r.externalId = stack.back();
    r.correlationId = correlation;
    emit(&r, sizeof r, 0);
  }
}

}  // namespace sim

using namespace sim;

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind) {
  SIM_FAULTS("cuptiActivityEnable");
  SIM_ALONE;
  return enable_kind(0, kind);
}

// As cuptiActivityEnable, and records of the devices, contexts and streams that there are already.
SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityEnableAndDump(CUpti_ActivityKind kind) {
  SIM_FAULTS("cuptiActivityEnableAndDump");
  SIM_FAILURE("cuptiActivityEnable");
  SIM_ALONE;
  return enable_and_dump(0, kind);
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind) {
  SIM_FAULTS("cuptiActivityDisable");
  SIM_ALONE;
  return disable_kind(0, kind);
}

namespace {

CUptiResult enable_for_context(CUcontext context, CUpti_ActivityKind kind, bool on) {
  Context* c = Machine::get().find_context(context);
  if (!c) return CUPTI_ERROR_INVALID_CONTEXT;
  if (!valid_kind(kind)) return CUPTI_ERROR_INVALID_KIND;
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_MEMCPY:
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
    case CUPTI_ACTIVITY_KIND_MEMSET:
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      break;
    default:
      return CUPTI_ERROR_NOT_COMPATIBLE;  // belongs to no one context
  }
  const uint64_t bit = uint64_t{1} << kind;
  on ? c->kinds.fetch_or(bit) : c->kinds.fetch_and(~bit);
  return CUPTI_SUCCESS;
}

}  // namespace

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityEnableContext(CUcontext context, CUpti_ActivityKind kind) {
  SIM_FAULTS("cuptiActivityEnableContext");
  return enable_for_context(context, kind, true);
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityDisableContext(CUcontext context, CUpti_ActivityKind kind) {
  SIM_FAULTS("cuptiActivityDisableContext");
  return enable_for_context(context, kind, false);
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid, uint8_t enable) {
  SIM_FAULTS("cuptiActivityEnableRuntimeApi");
  SIM_ALONE;
  return enable_api(0, Api::kRuntime, cbid, enable != 0);
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t enable) {
  SIM_FAULTS("cuptiActivityEnableDriverApi");
  SIM_ALONE;
  return enable_api(0, Api::kDriver, cbid, enable != 0);
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute, size_t* size,
                                                          void* value) {
  SIM_FAULTS("cuptiActivitySetAttribute");
  SIM_ALONE;
  return set_attribute(0, attribute, size, value);
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityGetAttribute(CUpti_ActivityAttribute attribute, size_t* size,
                                                          void* value) {
  SIM_FAULTS("cuptiActivityGetAttribute");
  SIM_ALONE;
  return get_attribute(0, attribute, size, value);
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc function) {
  SIM_FAULTS("cuptiActivityRegisterTimestampCallback");
  if (!function) return CUPTI_ERROR_INVALID_PARAMETER;
  SIM_ALONE;
  return Machine::get().clock().set(function) ? CUPTI_SUCCESS : CUPTI_ERROR_NOT_SUPPORTED;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityEnableLatencyTimestamps(uint8_t enable) {
  SIM_FAULTS("cuptiActivityEnableLatencyTimestamps");
  if (sharing()) return CUPTI_ERROR_NOT_SUPPORTED;
  set(g_latency, 0, enable != 0);
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t enable) {
  SIM_FAULTS("cuptiActivityEnableCudaEventDeviceTimestamps");
  if (Machine::get().version() < 120800) return CUPTI_ERROR_NOT_SUPPORTED;
  if (sharing()) return CUPTI_ERROR_NOT_SUPPORTED;
  set(g_event_times, 0, enable != 0);
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                                       uint64_t id) {
  SIM_FAILURE("cuptiActivityPushExternalCorrelationId");
  SIM_ALONE;
  if (kind <= CUPTI_EXTERNAL_CORRELATION_KIND_INVALID || kind >= CUPTI_EXTERNAL_CORRELATION_KIND_SIZE)
    return CUPTI_ERROR_INVALID_PARAMETER;
  t_external.stack[kind].push_back(id);
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                                      uint64_t* last) {
  SIM_FAILURE("cuptiActivityPopExternalCorrelationId");
  SIM_ALONE;
  if (kind <= CUPTI_EXTERNAL_CORRELATION_KIND_INVALID || kind >= CUPTI_EXTERNAL_CORRELATION_KIND_SIZE)
    return CUPTI_ERROR_INVALID_PARAMETER;
  auto& stack = t_external.stack[kind];
  if (stack.empty()) return CUPTI_ERROR_QUEUE_EMPTY;
  if (last) *last = stack.back();
  stack.pop_back();
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiSetThreadIdType(CUpti_ActivityThreadIdType type) {
  SIM_FAULTS("cuptiSetThreadIdType");
  if (type != CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT && type != CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM)
    return CUPTI_ERROR_INVALID_PARAMETER;
  if (sharing()) return CUPTI_ERROR_NOT_SUPPORTED;
  set(g_system_ids, 0, type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiGetThreadIdType(CUpti_ActivityThreadIdType* type) {
  SIM_FAULTS("cuptiGetThreadIdType");
  if (!type) return CUPTI_ERROR_INVALID_PARAMETER;
  if (sharing()) return CUPTI_ERROR_NOT_SUPPORTED;
  *type = system_thread_ids(0) ? CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM : CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT;
  return CUPTI_SUCCESS;
}
