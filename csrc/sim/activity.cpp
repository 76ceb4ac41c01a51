#include "activity.h"

#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

#include "buffers.h"
#include "faults.h"
#include "layout.h"
#include "machine.h"
#include "records.h"

namespace sim {
namespace {

constexpr size_t kMaxCbid = 1024;
std::atomic<bool> g_kinds[kKinds];
std::atomic<bool> g_api[2][kMaxCbid];  // runtime, driver: calls whose records are wanted
std::atomic<bool> g_latency{false};
std::atomic<bool> g_event_times{false};
std::atomic<bool> g_system_ids{false};

struct ExternalIds {
  std::vector<uint64_t> stack[CUPTI_EXTERNAL_CORRELATION_KIND_SIZE];
};
thread_local ExternalIds t_external;

struct Attribute {
  size_t bytes;
  uint64_t value;
};
constexpr size_t kSize = sizeof(size_t);
constexpr Attribute kDefaults[] = {
    {kSize, 3200000}, {kSize, 8388608}, {kSize, 250}, {kSize, 25000}, {kSize, 250},      {1, 0},
    {kSize, 3},       {kSize, 3},       {1, 0},       {1, 1},         {kSize, 16777216},
};
constexpr size_t kAttributes = sizeof kDefaults / sizeof kDefaults[0];
std::mutex g_attribute_mutex;  // guards the values
uint64_t g_attributes[kAttributes] = {3200000, 8388608, 250, 25000, 250, 0, 3, 3, 0, 1, 16777216};

bool valid_kind(CUpti_ActivityKind kind) { return stride(kind, Machine::get().version()) != 0; }

void set_api(bool driver, bool on) {
  for (auto& wanted : g_api[driver]) wanted.store(on, std::memory_order_relaxed);
}

CUptiResult enable_api(bool driver, CUpti_CallbackId cbid, bool on) {
  const uint32_t version = Machine::get().version();
  if (cbid == 0 || cbid >= (driver ? driver_cbids(version) : runtime_cbids(version)))
    return CUPTI_ERROR_INVALID_PARAMETER;
  g_api[driver][cbid] = on;
  return CUPTI_SUCCESS;
}

}  // namespace

bool kind_enabled(CUpti_ActivityKind kind) { return g_kinds[kind].load(std::memory_order_relaxed); }

bool kind_enabled(CUpti_ActivityKind kind, const Context& c) {
  return kind_enabled(kind) || (c.kinds.load(std::memory_order_relaxed) >> kind & 1) != 0;
}

bool api_record_wanted(bool driver, CUpti_CallbackId cbid) {
  return cbid < kMaxCbid && g_api[driver][cbid].load(std::memory_order_relaxed);
}

bool latency_timestamps() { return g_latency.load(std::memory_order_relaxed); }
bool device_event_timestamps() { return g_event_times.load(std::memory_order_relaxed); }
bool system_thread_ids() { return g_system_ids.load(std::memory_order_relaxed); }

bool activity_in_use() {
  for (auto& k : g_kinds)
    if (k.load()) return true;
  for (auto& domain : g_api)
    for (auto& wanted : domain)
      if (wanted.load(std::memory_order_relaxed)) return true;
  for (const Context* c : Machine::get().contexts())
    if (c->kinds.load() != 0) return true;
  return false;
}

void disable_activity() {
  for (auto& k : g_kinds) k = false;
  set_api(false, false);
  set_api(true, false);
  for (Context* c : Machine::get().contexts()) c->kinds = 0;
}

void reset_activity_settings() {
  {
    const std::lock_guard lock(g_attribute_mutex);
    for (size_t i = 0; i < kAttributes; ++i) g_attributes[i] = kDefaults[i].value;
  }
  set_per_thread_buffers(true);
  set_cleared_by_client(false);
  g_latency = g_event_times = g_system_ids = false;
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
  if (!valid_kind(kind)) return CUPTI_ERROR_INVALID_KIND;
  // Per-kernel serialisation and concurrent kernels exclude each other.
  if ((kind == CUPTI_ACTIVITY_KIND_KERNEL && kind_enabled(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) ||
      (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && kind_enabled(CUPTI_ACTIVITY_KIND_KERNEL)))
    return CUPTI_ERROR_NOT_COMPATIBLE;
  // Overrides what was said call by call.
  if (kind == CUPTI_ACTIVITY_KIND_RUNTIME || kind == CUPTI_ACTIVITY_KIND_DRIVER)
    set_api(kind == CUPTI_ACTIVITY_KIND_DRIVER, true);
  g_kinds[kind] = true;
  return CUPTI_SUCCESS;
}

// As cuptiActivityEnable, and records of the devices, contexts and streams that there are already.
SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityEnableAndDump(CUpti_ActivityKind kind) {
  SIM_FAULTS("cuptiActivityEnableAndDump");
  const CUptiResult rc = cuptiActivityEnable(kind);
  if (rc == CUPTI_SUCCESS) dump_existing(kind);
  return rc;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind) {
  SIM_FAULTS("cuptiActivityDisable");
  if (!valid_kind(kind)) return CUPTI_ERROR_INVALID_KIND;
  g_kinds[kind] = false;
  if (kind == CUPTI_ACTIVITY_KIND_RUNTIME || kind == CUPTI_ACTIVITY_KIND_DRIVER)
    set_api(kind == CUPTI_ACTIVITY_KIND_DRIVER, false);
  return CUPTI_SUCCESS;
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
  return enable_api(false, cbid, enable != 0);
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t enable) {
  SIM_FAULTS("cuptiActivityEnableDriverApi");
  return enable_api(true, cbid, enable != 0);
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute, size_t* size,
                                                          void* value) {
  SIM_FAULTS("cuptiActivitySetAttribute");
  if (!size || !value || static_cast<size_t>(attribute) >= kAttributes) return CUPTI_ERROR_INVALID_PARAMETER;
  if (*size < kDefaults[attribute].bytes) return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
  uint64_t given = 0;
  std::memcpy(&given, value, kDefaults[attribute].bytes);
  if (attribute == CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER) set_per_thread_buffers(given != 0);
  if (attribute == CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER) set_cleared_by_client(given != 0);
  const std::lock_guard lock(g_attribute_mutex);
  g_attributes[attribute] = given;
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityGetAttribute(CUpti_ActivityAttribute attribute, size_t* size,
                                                          void* value) {
  SIM_FAULTS("cuptiActivityGetAttribute");
  if (!size || !value || static_cast<size_t>(attribute) >= kAttributes) return CUPTI_ERROR_INVALID_PARAMETER;
  if (*size < kDefaults[attribute].bytes) return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
  const std::lock_guard lock(g_attribute_mutex);
  std::memcpy(value, &g_attributes[attribute], kDefaults[attribute].bytes);
  *size = kDefaults[attribute].bytes;
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc function) {
  SIM_FAULTS("cuptiActivityRegisterTimestampCallback");
  if (!function) return CUPTI_ERROR_INVALID_PARAMETER;
  return Machine::get().clock().set(function) ? CUPTI_SUCCESS : CUPTI_ERROR_NOT_SUPPORTED;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityEnableLatencyTimestamps(uint8_t enable) {
  SIM_FAULTS("cuptiActivityEnableLatencyTimestamps");
  g_latency = enable != 0;
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t enable) {
  SIM_FAULTS("cuptiActivityEnableCudaEventDeviceTimestamps");
  if (Machine::get().version() < 120800) return CUPTI_ERROR_NOT_SUPPORTED;
  g_event_times = enable != 0;
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                                       uint64_t id) {
  SIM_FAILURE("cuptiActivityPushExternalCorrelationId");
  if (kind <= CUPTI_EXTERNAL_CORRELATION_KIND_INVALID || kind >= CUPTI_EXTERNAL_CORRELATION_KIND_SIZE)
    return CUPTI_ERROR_INVALID_PARAMETER;
  t_external.stack[kind].push_back(id);
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                                      uint64_t* last) {
  SIM_FAILURE("cuptiActivityPopExternalCorrelationId");
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
  g_system_ids = type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM;
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiGetThreadIdType(CUpti_ActivityThreadIdType* type) {
  SIM_FAULTS("cuptiGetThreadIdType");
  if (!type) return CUPTI_ERROR_INVALID_PARAMETER;
  *type = system_thread_ids() ? CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM : CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT;
  return CUPTI_SUCCESS;
}
