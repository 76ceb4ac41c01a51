// CUPTI's calls for one subscriber of several, as 13.5's headers declare them. What they point at and is not
// in the headers built with is void.
#include <cstring>

#include "sim/activity/buffers.h"
#include "sim/activity/clients.h"
#include "sim/activity/wanted_records.h"
#include "sim/machine/faults.h"
#include "sim/machine/machine.h"

using namespace sim;

namespace {

// Attributes that 13.3 added.
constexpr int kState = 12, kLatency = 15, kThreadIds = 21, kClock = 22;

template <typename T>
CUptiResult give(size_t* size, void* value, T now) {
  if (*size < sizeof now) return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
  std::memcpy(value, &now, sizeof now);
  *size = sizeof now;
  return CUPTI_SUCCESS;
}

template <typename T>
bool take(const size_t* size, const void* value, T& given) {
  if (*size < sizeof given) return false;
  std::memcpy(&given, value, sizeof given);
  return true;
}

CUptiResult set_newer_attribute(uint32_t who, int attribute, const size_t* size, const void* value) {
  uint8_t flag = 0;
  CUpti_ActivityThreadIdType type{};
  CUpti_TimestampCallbackFunc clock = nullptr;
  switch (attribute) {
    case kLatency:
      if (!take(size, value, flag)) return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
      set_latency_timestamps(who, flag != 0);
      return CUPTI_SUCCESS;
    case kThreadIds:
      if (!take(size, value, type)) return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
      set_system_thread_ids(who, type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
      return CUPTI_SUCCESS;
    case kClock:
      if (!take(size, value, clock)) return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
      if (!clock) return clock_of(who).reset(Machine::get().virtual_clock()), CUPTI_SUCCESS;
      return clock_of(who).set(clock) ? CUPTI_SUCCESS : CUPTI_ERROR_NOT_SUPPORTED;
    default:
      return CUPTI_ERROR_INVALID_PARAMETER;
  }
}

}  // namespace

// The subscriber's place in `who`, or the call returns.
#define SIM_SHARED(function)                                               \
  SIM_FAULTS(function);                                                    \
  if (Machine::get().version() < 130300) return CUPTI_ERROR_NOT_SUPPORTED; \
  const uint32_t who = shared_client(subscriber);                          \
  if (who == 0) return CUPTI_ERROR_INVALID_PARAMETER

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityEnable_v2(CUpti_SubscriberHandle subscriber,
                                                       CUpti_ActivityKind kind, void*) {
  SIM_SHARED("cuptiActivityEnable_v2");
  return enable_kind(who, kind);
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityEnableAndDump_v2(CUpti_SubscriberHandle subscriber,
                                                              CUpti_ActivityKind kind, void*) {
  SIM_SHARED("cuptiActivityEnableAndDump_v2");
  return enable_and_dump(who, kind);
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityDisable_v2(CUpti_SubscriberHandle subscriber,
                                                        CUpti_ActivityKind kind, void*) {
  SIM_SHARED("cuptiActivityDisable_v2");
  return disable_kind(who, kind);
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks_v2(CUpti_SubscriberHandle subscriber,
                                                                  SharedRequest request,
                                                                  SharedComplete complete) {
  SIM_SHARED("cuptiActivityRegisterCallbacks_v2");
  if (!request || !complete) return CUPTI_ERROR_INVALID_PARAMETER;
  set_complete_callback(who, complete);
  set_request_callback(who, request);
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityGetAttribute_v2(CUpti_SubscriberHandle subscriber,
                                                             CUpti_ActivityAttribute attribute, size_t* size,
                                                             void* value) {
  SIM_SHARED("cuptiActivityGetAttribute_v2");
  if (!size || !value) return CUPTI_ERROR_INVALID_PARAMETER;
  switch (static_cast<int>(attribute)) {
    case kState:
      return give(size, value, sharing_state());
    case kLatency:
      return give(size, value, static_cast<uint8_t>(latency_timestamps(who)));
    case kThreadIds:
      return give(size, value,
                  system_thread_ids(who) ? CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM
                                         : CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT);
    default:
      return get_attribute(who, attribute, size, value);
  }
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivitySetAttribute_v2(CUpti_SubscriberHandle subscriber,
                                                             CUpti_ActivityAttribute attribute, size_t* size,
                                                             void* value) {
  SIM_SHARED("cuptiActivitySetAttribute_v2");
  if (!size || !value) return CUPTI_ERROR_INVALID_PARAMETER;
  if (static_cast<int>(attribute) >= kState) return set_newer_attribute(who, attribute, size, value);
  return set_attribute(who, attribute, size, value);
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityGetNextRecord_v2(CUpti_SubscriberHandle subscriber,
                                                              uint8_t* buffer, size_t valid,
                                                              CUpti_Activity** record) {
  SIM_FAILURE("cuptiActivityGetNextRecord_v2");
  if (shared_client(subscriber) == 0) return CUPTI_ERROR_INVALID_PARAMETER;
  return next_record(buffer, valid, record);
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords_v2(CUpti_SubscriberHandle subscriber,
                                                                     CUcontext, uint32_t, size_t* dropped) {
  SIM_SHARED("cuptiActivityGetNumDroppedRecords_v2");
  if (!dropped) return CUPTI_ERROR_INVALID_PARAMETER;
  *dropped = take_dropped(who);
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityEnableRuntimeApi_v2(CUpti_SubscriberHandle subscriber,
                                                                 CUpti_CallbackId cbid, uint8_t enable) {
  SIM_SHARED("cuptiActivityEnableRuntimeApi_v2");
  return enable_api(who, Api::kRuntime, cbid, enable != 0);
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityEnableDriverApi_v2(CUpti_SubscriberHandle subscriber,
                                                                CUpti_CallbackId cbid, uint8_t enable) {
  SIM_SHARED("cuptiActivityEnableDriverApi_v2");
  return enable_api(who, Api::kDriver, cbid, enable != 0);
}

// In 13.3 cuptiGetTimestamp: the clock that everybody's records would have.
SIM_EXPORT CUptiResult CUPTIAPI cuptiGetTimestamp_v2(CUpti_SubscriberHandle subscriber, uint64_t* timestamp) {
  SIM_SHARED("cuptiGetTimestamp_v2");
  if (!timestamp) return CUPTI_ERROR_INVALID_PARAMETER;
  Machine& m = Machine::get();
  *timestamp = (m.version() >= 130400 ? clock_of(who) : m.clock()).timestamp(m.now());
  return CUPTI_SUCCESS;
}
