#include "collect/settings.h"

#include <string>

#include "base/error.h"
#include "cupti/api.h"
#include "cupti/call.h"

namespace cuptiprof {

CUptiResult SettingsGuard::set(const Api& api, CUpti_ActivityAttribute which, size_t bytes, uint64_t value) {
  if (!api.cuptiActivitySetAttribute) return CUPTI_ERROR_NOT_SUPPORTED;
  uint64_t before = 0;
  size_t size = bytes;
  const bool known =
      api.cuptiActivityGetAttribute && api.cuptiActivityGetAttribute(which, &size, &before) == CUPTI_SUCCESS;
  if (known && before == value) return CUPTI_SUCCESS;
  size = bytes;
  const CUptiResult rc = api.cuptiActivitySetAttribute(which, &size, &value);
  if (rc == CUPTI_SUCCESS && known) x_attributes.push_back({which, bytes, before});
  return rc;
}

void SettingsGuard::apply(const Api& api, const CuptiSettings& wanted) {
  x_attributes.clear();
  x_thread_ids.reset();
  x_latency = false;
  CUpti_ActivityThreadIdType ids = CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT;
  if (api.cuptiSetThreadIdType) {
    const bool known = api.cuptiGetThreadIdType && api.cuptiGetThreadIdType(&ids) == CUPTI_SUCCESS;
    if (!known || ids != CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM) {
      if (api.cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM) == CUPTI_SUCCESS && known)
        x_thread_ids = ids;
    }
  }
  // CUPTI need not clear our buffers on the launching thread: the decoder does.
  set(api, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, 1, 1);
  // Shared buffers would make every launching thread wait for the others.
  set(api, CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, 1, 1);
  const auto asked = [&](CUpti_ActivityAttribute which, const char* option, size_t value) {
    if (value)
      check(api, set(api, which, sizeof(size_t), value), "cuptiActivitySetAttribute",
            std::string(option) + "=" + std::to_string(value));
  };
  asked(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, "device_buffer_size", wanted.device_buffer_bytes);
  asked(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, "device_buffers", wanted.device_buffers);
  // Nobody can ask whether they are on; off is CUPTI's default.
  if (wanted.latency_timestamps && api.cuptiActivityEnableLatencyTimestamps)
    x_latency = api.cuptiActivityEnableLatencyTimestamps(1) == CUPTI_SUCCESS;
}

void SettingsGuard::restore(const Api& api) noexcept {
  if (x_latency) api.cuptiActivityEnableLatencyTimestamps(0);
  for (auto a = x_attributes.rbegin(); a != x_attributes.rend(); ++a) {
    size_t size = a->bytes;
    uint64_t before = a->before;
    api.cuptiActivitySetAttribute(a->which, &size, &before);
  }
  if (x_thread_ids) api.cuptiSetThreadIdType(*x_thread_ids);
  x_attributes.clear();
  x_thread_ids.reset();
  x_latency = false;
}

}  // namespace cuptiprof
