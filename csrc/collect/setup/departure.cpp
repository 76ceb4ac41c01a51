#include "collect/setup/departure.h"

#include <cstring>

namespace cuptiprof {

void Departure::told(CUpti_CallbackId cbid, const CUpti_StateData& state) noexcept {
  if (cbid != CUPTI_CBID_STATE_FATAL_ERROR || x_claimed.exchange(true)) return;
  const char* message = state.notification.message ? state.notification.message : "";
  std::strncpy(x_message, message, sizeof x_message - 1);
  const int result = static_cast<int>(state.notification.result);
  x_result.store(result != 0 ? result : static_cast<int>(CUPTI_ERROR_UNKNOWN));
  x_gone.store(true, std::memory_order_release);
}

void Departure::look(const Api& api, CUpti_SubscriberHandle subscriber) noexcept {
  if (happened() || !x_watching.load() || !subscriber || !api.cuptiGetCallbackState) return;
  uint32_t on = 0;
  const CUptiResult rc = api.cuptiGetCallbackState(&on, subscriber, CUPTI_CB_DOMAIN_RESOURCE,
                                                   CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
  if (rc == CUPTI_ERROR_INVALID_PARAMETER || (rc == CUPTI_SUCCESS && on == 0))
    x_gone.store(true, std::memory_order_release);
}

std::string Departure::text() const {
  const int result = x_result.load();
  std::string text = result != 0
                         ? "CUPTI reported a fatal error (" + std::to_string(result) +
                               (x_message[0] ? std::string(": ") + x_message : std::string()) +
                               ") and took itself out of the process"
                         : "CUPTI was taken out of the process by something else (cuptiFinalize), or its "
                           "subscription taken away";
  return text + " while the session collected: what came after is missing";
}

}  // namespace cuptiprof
