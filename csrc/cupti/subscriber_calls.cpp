#include "cupti/subscriber_calls.h"

#include "cupti/call.h"

namespace cuptiprof {
namespace {

constexpr int kFirstShared = 130300;  // 13.2 has some of the calls, unfinished

// Empty: this library cannot, or its driver (before r610), or whoever subscribed first does not share.
Subscription subscribe_shared(const Api& api, CUpti_CallbackFunc callback, void* user) {
  const SubscriberApi& calls = api.of_subscriber;
  if (api.version < kFirstShared || !api.cuptiSubscribe_v2 || !calls.complete()) return {};
  SharingParams params;
  params.name = "cuptiprof";
  params.allow_multiple = 1;
  CUpti_SubscriberHandle handle = nullptr;
  if (api.cuptiSubscribe_v2(&handle, callback, user, reinterpret_cast<CUpti_SubscriberParams*>(&params)) !=
      CUPTI_SUCCESS)
    return {};
  // Believed only where the calls that everything else needs answer too.
  uint8_t state = 0;
  size_t bytes = sizeof state;
  uint64_t now = 0;
  if (calls.cuptiActivityGetAttribute_v2(handle, kAttributeSubscriberState, &bytes, &state) ==
          CUPTI_SUCCESS &&
      state == 1 && calls.cuptiGetTimestamp_v2(handle, &now) == CUPTI_SUCCESS)
    return {handle, true};
  api.cuptiUnsubscribe(handle);
  return {};
}

}  // namespace

Subscription subscribe(const Api& api, CUpti_CallbackFunc callback, void* user, Sharing sharing) {
  Subscription s;
  if (sharing == Sharing::kOffers) s = subscribe_shared(api, callback, user);
  if (s.handle) return s;
  const CUptiResult rc = api.cuptiSubscribe(&s.handle, callback, user);
  if (rc == CUPTI_SUCCESS) return s;
  if (rc == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && sharing == Sharing::kJoins)
    if (s = subscribe_shared(api, callback, user); s.handle) return s;
  check(api, rc, "cuptiSubscribe");
  return {};
}

#define CP_CALL(shared_call, own_call)                   \
  if (x_shared) return x_api->of_subscriber.shared_call; \
  return x_api->own_call

#define CP_CALL_IF(name, shared_call, own_call)          \
  if (x_shared) return x_api->of_subscriber.shared_call; \
  return x_api->name ? x_api->own_call : CUPTI_ERROR_NOT_SUPPORTED

CUptiResult SubscriberCalls::enable(CUpti_ActivityKind kind) const noexcept {
  CP_CALL(cuptiActivityEnable_v2(x_shared, kind, nullptr), cuptiActivityEnable(kind));
}

CUptiResult SubscriberCalls::enable_and_dump(CUpti_ActivityKind kind) const noexcept {
  CP_CALL_IF(cuptiActivityEnableAndDump, cuptiActivityEnableAndDump_v2(x_shared, kind, nullptr),
             cuptiActivityEnableAndDump(kind));
}

CUptiResult SubscriberCalls::disable(CUpti_ActivityKind kind) const noexcept {
  CP_CALL(cuptiActivityDisable_v2(x_shared, kind, nullptr), cuptiActivityDisable(kind));
}

void SubscriberCalls::leave_out_runtime_call(CUpti_CallbackId cbid) const noexcept {
  if (x_shared)
    x_api->of_subscriber.cuptiActivityEnableRuntimeApi_v2(x_shared, cbid, 0);
  else if (x_api->cuptiActivityEnableRuntimeApi)
    x_api->cuptiActivityEnableRuntimeApi(cbid, 0);
}

void SubscriberCalls::leave_out_driver_call(CUpti_CallbackId cbid) const noexcept {
  if (x_shared)
    x_api->of_subscriber.cuptiActivityEnableDriverApi_v2(x_shared, cbid, 0);
  else if (x_api->cuptiActivityEnableDriverApi)
    x_api->cuptiActivityEnableDriverApi(cbid, 0);
}

CUptiResult SubscriberCalls::attribute(CUpti_ActivityAttribute which, size_t* bytes,
                                       void* value) const noexcept {
  CP_CALL_IF(cuptiActivityGetAttribute, cuptiActivityGetAttribute_v2(x_shared, which, bytes, value),
             cuptiActivityGetAttribute(which, bytes, value));
}

CUptiResult SubscriberCalls::set_attribute(CUpti_ActivityAttribute which, size_t bytes,
                                           const void* value) const noexcept {
  void* given = const_cast<void*>(value);  // CUPTI only reads it
  CP_CALL_IF(cuptiActivitySetAttribute, cuptiActivitySetAttribute_v2(x_shared, which, &bytes, given),
             cuptiActivitySetAttribute(which, &bytes, given));
}

CUptiResult SubscriberCalls::thread_ids(CUpti_ActivityThreadIdType* type) const noexcept {
  size_t bytes = sizeof *type;
  CP_CALL_IF(cuptiGetThreadIdType,
             cuptiActivityGetAttribute_v2(x_shared, kAttributeThreadIdType, &bytes, type),
             cuptiGetThreadIdType(type));
}

CUptiResult SubscriberCalls::set_thread_ids(CUpti_ActivityThreadIdType type) const noexcept {
  size_t bytes = sizeof type;
  CP_CALL_IF(cuptiSetThreadIdType,
             cuptiActivitySetAttribute_v2(x_shared, kAttributeThreadIdType, &bytes, &type),
             cuptiSetThreadIdType(type));
}

CUptiResult SubscriberCalls::set_latency_timestamps(bool on) const noexcept {
  uint8_t value = on;
  size_t bytes = sizeof value;
  CP_CALL_IF(cuptiActivityEnableLatencyTimestamps,
             cuptiActivitySetAttribute_v2(x_shared, kAttributeLatencyTimestamps, &bytes, &value),
             cuptiActivityEnableLatencyTimestamps(value));
}

CUptiResult SubscriberCalls::set_clock(CUpti_TimestampCallbackFunc clock) const noexcept {
  size_t bytes = sizeof clock;
  CP_CALL_IF(cuptiActivityRegisterTimestampCallback,
             cuptiActivitySetAttribute_v2(x_shared, kAttributeTimestampCallback, &bytes, &clock),
             cuptiActivityRegisterTimestampCallback(clock));
}

CUptiResult SubscriberCalls::timestamp(uint64_t* now) const noexcept {
  CP_CALL(cuptiGetTimestamp_v2(x_shared, now), cuptiGetTimestamp(now));
}

CUptiResult SubscriberCalls::dropped(size_t* records) const noexcept {
  CP_CALL(cuptiActivityGetNumDroppedRecords_v2(x_shared, nullptr, 0, records),
          cuptiActivityGetNumDroppedRecords(nullptr, 0, records));
}

#undef CP_CALL
#undef CP_CALL_IF

}  // namespace cuptiprof
