#include "collect/setup/settings.h"

#include <string>

#include "base/error.h"
#include "cupti/call.h"
#include "cupti/subscriber_calls.h"

namespace cuptiprof {

CUptiResult SettingsGuard::set(const SubscriberCalls& calls, CUpti_ActivityAttribute which, size_t bytes,
                               uint64_t value) {
  uint64_t before = 0;
  size_t size = bytes;
  const bool known = calls.attribute(which, &size, &before) == CUPTI_SUCCESS;
  if (known && before == value) return CUPTI_SUCCESS;
  const CUptiResult rc = calls.set_attribute(which, bytes, &value);
  if (rc == CUPTI_SUCCESS && known) x_attributes.push_back({which, bytes, before});
  return rc;
}

void SettingsGuard::apply(const SubscriberCalls& calls, const CuptiSettings& wanted) {
  x_attributes.clear();
  x_thread_ids.reset();
  x_latency = false;
  CUpti_ActivityThreadIdType ids = CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT;
  const bool known = calls.thread_ids(&ids) == CUPTI_SUCCESS;
  if (!known || ids != CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM) {
    if (calls.set_thread_ids(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM) == CUPTI_SUCCESS && known)
      x_thread_ids = ids;
  }
  // CUPTI need not clear our buffers on the launching thread: the decoder does.
  set(calls, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, 1, 1);
  // Shared buffers would make every launching thread wait for the others.
  set(calls, CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, 1, 1);
  const auto asked = [&](CUpti_ActivityAttribute which, const char* option, size_t value) {
    if (value)
      check(calls.api(), set(calls, which, sizeof(size_t), value), "cuptiActivitySetAttribute",
            std::string(option) + "=" + std::to_string(value));
  };
  asked(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, "device_buffer_size", wanted.device_buffer_bytes);
  asked(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, "device_buffers", wanted.device_buffers);
  // Nobody can ask whether they are on; off is CUPTI's default.
  if (wanted.latency_timestamps) x_latency = calls.set_latency_timestamps(true) == CUPTI_SUCCESS;
}

void SettingsGuard::restore(const SubscriberCalls& calls) noexcept {
  if (x_latency) calls.set_latency_timestamps(false);
  for (auto a = x_attributes.rbegin(); a != x_attributes.rend(); ++a)
    calls.set_attribute(a->which, a->bytes, &a->before);
  if (x_thread_ids) calls.set_thread_ids(*x_thread_ids);
  x_attributes.clear();
  x_thread_ids.reset();
  x_latency = false;
}

}  // namespace cuptiprof
