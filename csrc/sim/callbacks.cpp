// Subscription and callbacks, versions, names, and what needs no GPU.
#include <cupti_callbacks.h>
#include <cupti_result.h>
#include <cupti_version.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>

#include "cbid_names.h"
#include "layout.h"
#include "machine.h"

namespace sim {
namespace {

constexpr size_t kMaxCbid = 1024;
std::atomic<bool> g_on[CUPTI_CB_DOMAIN_SIZE][kMaxCbid];
std::atomic<CUpti_CallbackFunc> g_function{nullptr};
std::atomic<void*> g_user{nullptr};
char g_subscriber_object;

}  // namespace

bool subscribed() { return g_function.load() != nullptr; }

bool callback_enabled(CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  return cbid < kMaxCbid && g_on[domain][cbid].load(std::memory_order_relaxed) &&
         g_function.load(std::memory_order_relaxed);
}

void call_back(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data) {
  if (!callback_enabled(domain, cbid)) return;
  const auto function = g_function.load();
  if (!function) return;
  Machine::get().truth.callbacks.fetch_add(1, std::memory_order_relaxed);
  function(g_user.load(), domain, cbid, data);
}

}  // namespace sim

using namespace sim;

SIM_EXPORT CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle* subscriber,
                                               CUpti_CallbackFunc function, void* user) {
  SIM_FAULTS("cuptiSubscribe");
  if (!subscriber || !function) return CUPTI_ERROR_INVALID_PARAMETER;
  CUpti_CallbackFunc none = nullptr;
  if (!g_function.compare_exchange_strong(none, function))
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  g_user = user;
  *subscriber = reinterpret_cast<CUpti_SubscriberHandle>(&g_subscriber_object);
  return CUPTI_SUCCESS;
}

// As cuptiSubscribe, and names the holder when there is one; not in libraries before 13.0.
SIM_EXPORT CUptiResult CUPTIAPI cuptiSubscribe_v2(CUpti_SubscriberHandle* subscriber,
                                                  CUpti_CallbackFunc function, void* user,
                                                  CUpti_SubscriberParams* params) {
  SIM_FAULTS("cuptiSubscribe_v2");
  if (Machine::get().version() < 130000) return CUPTI_ERROR_NOT_SUPPORTED;
  if (params && params->structSize != CUpti_SubscriberParams_STRUCT_SIZE)
    return CUPTI_ERROR_INVALID_PARAMETER;
  const CUptiResult rc = cuptiSubscribe(subscriber, function, user);
  if (rc == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && params && params->oldSubscriberName &&
      params->oldSubscriberSize > 0) {
    const Fault* other = Machine::get().fault(CUPTISIM_FAULT_OTHER_SUBSCRIBER);
    const std::string name = "CUPTI for " + (other ? other->name : std::string("(unnamed)"));
    const size_t n = std::min(name.size(), params->oldSubscriberSize - 1);
    std::memcpy(params->oldSubscriberName, name.data(), n);
    params->oldSubscriberName[n] = 0;
  }
  return rc;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
  SIM_FAULTS("cuptiUnsubscribe");
  if (subscriber != reinterpret_cast<CUpti_SubscriberHandle>(&g_subscriber_object) || !subscribed())
    return CUPTI_ERROR_INVALID_PARAMETER;
  for (auto& domain : g_on)
    for (auto& on : domain) on.store(false, std::memory_order_relaxed);
  g_function = nullptr;
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                                    CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  SIM_FAULTS("cuptiEnableCallback");
  if (subscriber != reinterpret_cast<CUpti_SubscriberHandle>(&g_subscriber_object) || !subscribed() ||
      domain <= CUPTI_CB_DOMAIN_INVALID || domain >= CUPTI_CB_DOMAIN_SIZE || cbid >= kMaxCbid)
    return CUPTI_ERROR_INVALID_PARAMETER;
  g_on[domain][cbid] = enable != 0;
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                                  CUpti_CallbackDomain domain) {
  SIM_FAULTS("cuptiEnableDomain");
  for (uint32_t cbid = 1; cbid < kMaxCbid; ++cbid)
    if (const auto rc = cuptiEnableCallback(enable, subscriber, domain, cbid); rc != CUPTI_SUCCESS) return rc;
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiGetVersion(uint32_t* version) {
  SIM_FAULTS("cuptiGetVersion");
  if (!version) return CUPTI_ERROR_INVALID_PARAMETER;
  *version = api_version(Machine::get().version());
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiGetTimestamp(uint64_t* timestamp) {
  if (!timestamp) return CUPTI_ERROR_INVALID_PARAMETER;
  *timestamp = Machine::get().now();
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult result, const char** text) {
  if (!text) return CUPTI_ERROR_INVALID_PARAMETER;
  for (const auto& r : k_result_names) {
    if (r.code != static_cast<int>(result)) continue;
    *text = r.name;
    return CUPTI_SUCCESS;
  }
  return CUPTI_ERROR_INVALID_PARAMETER;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid,
                                                     const char** name) {
  if (!name) return CUPTI_ERROR_INVALID_PARAMETER;
  const char* found = nullptr;
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API && cbid < std::size(k_runtime_names))
    found = k_runtime_names[cbid];
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API && cbid < std::size(k_driver_names)) found = k_driver_names[cbid];
  if (!found) return CUPTI_ERROR_INVALID_PARAMETER;
  *name = found;
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiFinalize() {
  SIM_FAULTS("cuptiFinalize");
  return CUPTI_SUCCESS;
}
