// What a session asks of CUPTI, as its only subscriber (calls without a subscriber) or as one of several (the
// calls of cupti/subscriber_api.h). CUPTI refuses to mix the two, so that one of them is chosen when a
// session subscribes and kept as long as it lives.
#pragma once
#include <cupti_activity.h>
#include <cupti_callbacks.h>

#include "cupti/api.h"

namespace cuptiprof {

class SubscriberCalls {
 public:
  // `shared`: the subscriber, one of several; null: the calls without one.
  SubscriberCalls(const Api& api, CUpti_SubscriberHandle shared = nullptr) noexcept
      : x_api(&api), x_shared(shared) {}

  const Api& api() const noexcept { return *x_api; }
  CUpti_SubscriberHandle handle() const noexcept { return x_shared; }
  bool is_shared() const noexcept { return x_shared != nullptr; }

  CUptiResult enable(CUpti_ActivityKind kind) const noexcept;
  // With records of what there is already. Refused where the library has no such call.
  CUptiResult enable_and_dump(CUpti_ActivityKind kind) const noexcept;
  CUptiResult disable(CUpti_ActivityKind kind) const noexcept;
  // Records of one call among an enabled kind; where the library has no choice they come.
  void leave_out_runtime_call(CUpti_CallbackId cbid) const noexcept;
  void leave_out_driver_call(CUpti_CallbackId cbid) const noexcept;

  CUptiResult attribute(CUpti_ActivityAttribute which, size_t* bytes, void* value) const noexcept;
  CUptiResult set_attribute(CUpti_ActivityAttribute which, size_t bytes, const void* value) const noexcept;
  CUptiResult thread_ids(CUpti_ActivityThreadIdType* type) const noexcept;
  CUptiResult set_thread_ids(CUpti_ActivityThreadIdType type) const noexcept;
  CUptiResult set_latency_timestamps(bool on) const noexcept;
  CUptiResult set_clock(CUpti_TimestampCallbackFunc clock) const noexcept;
  CUptiResult timestamp(uint64_t* now) const noexcept;
  // Since it was last asked.
  CUptiResult dropped(size_t* records) const noexcept;

  CUptiResult next_record(uint8_t* buffer, size_t valid, CUpti_Activity** record) const noexcept {
    if (x_shared) [[unlikely]]
      return x_api->of_subscriber.cuptiActivityGetNextRecord_v2(x_shared, buffer, valid, record);
    return x_api->cuptiActivityGetNextRecord(buffer, valid, record);
  }

 private:
  const Api* x_api;
  CUpti_SubscriberHandle x_shared;
};

enum class Sharing {
  kNever,  // the session needs what several subscribers cannot have
  kJoins,  // alone, unless CUPTI is shared by others already
  kOffers  // shared from the start, where CUPTI and its driver can
};

struct Subscription {
  CUpti_SubscriberHandle handle = nullptr;
  bool shared = false;
};

// Throws Error when CUPTI is held by another tool that does not share it.
Subscription subscribe(const Api& api, CUpti_CallbackFunc callback, void* user, Sharing sharing);

}  // namespace cuptiprof
