#include "callbacks.h"

#include <cupti_result.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>

#include "activity.h"
#include "buffers.h"
#include "counters.h"
#include "cuptisim.h"
#include "faults.h"
#include "inside.h"
#include "layout.h"
#include "machine.h"

namespace sim {
namespace {

constexpr size_t kMaxCbid = 1024;
std::atomic<bool> g_on[CUPTI_CB_DOMAIN_SIZE][kMaxCbid];
std::atomic<CUpti_CallbackFunc> g_function{nullptr};
std::atomic<void*> g_user{nullptr};
char g_subscriber_object;

bool is_subscriber(CUpti_SubscriberHandle s) {
  return s == reinterpret_cast<CUpti_SubscriberHandle>(&g_subscriber_object) && subscribed();
}

// Callback IDs of a domain in the emulated library; 0: no such domain.
uint32_t cbids_of(CUpti_CallbackDomain domain) {
  switch (domain) {
    case CUPTI_CB_DOMAIN_DRIVER_API:
      return driver_cbids(Machine::get().version());
    case CUPTI_CB_DOMAIN_RUNTIME_API:
      return runtime_cbids(Machine::get().version());
    case CUPTI_CB_DOMAIN_RESOURCE:
      return CUPTI_CBID_RESOURCE_SIZE;
    case CUPTI_CB_DOMAIN_SYNCHRONIZE:
      return CUPTI_CBID_SYNCHRONIZE_SIZE;
    case CUPTI_CB_DOMAIN_NVTX:
      return 64;
    case CUPTI_CB_DOMAIN_STATE:
      return CUPTI_CBID_STATE_SIZE;
    default:
      return 0;
  }
}

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

void resource_callback(CUpti_CallbackId cbid, CUcontext context, CUstream stream, void* descriptor) {
  if (!callback_enabled(CUPTI_CB_DOMAIN_RESOURCE, cbid)) return;
  CUpti_ResourceData data{};
  data.context = context;
  data.resourceHandle.stream = stream;
  data.resourceDescriptor = descriptor;
  call_back(CUPTI_CB_DOMAIN_RESOURCE, cbid, &data);
}

void drop_subscriber() {
  for (auto& domain : g_on)
    for (auto& on : domain) on.store(false, std::memory_order_relaxed);
  g_function = nullptr;
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
    const auto other = fault(CUPTISIM_FAULT_OTHER_SUBSCRIBER);
    const std::string name = "CUPTI for " + (other ? other->name : std::string("(unnamed)"));
    const size_t n = std::min(name.size(), params->oldSubscriberSize - 1);
    std::memcpy(params->oldSubscriberName, name.data(), n);
    params->oldSubscriberName[n] = 0;
  }
  return rc;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
  SIM_FAULTS("cuptiUnsubscribe");
  if (!is_subscriber(subscriber)) return CUPTI_ERROR_INVALID_PARAMETER;
  drop_subscriber();
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                                    CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  SIM_FAULTS("cuptiEnableCallback");
  if (!is_subscriber(subscriber) || cbid == 0 || cbid >= cbids_of(domain))
    return CUPTI_ERROR_INVALID_PARAMETER;
  g_on[domain][cbid] = enable != 0;
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiGetCallbackState(uint32_t* enable, CUpti_SubscriberHandle subscriber,
                                                      CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  SIM_FAULTS("cuptiGetCallbackState");
  if (!enable || !is_subscriber(subscriber) || cbid == 0 || cbid >= cbids_of(domain))
    return CUPTI_ERROR_INVALID_PARAMETER;
  *enable = g_on[domain][cbid];
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                                  CUpti_CallbackDomain domain) {
  SIM_FAULTS("cuptiEnableDomain");
  const uint32_t count = cbids_of(domain);
  if (!is_subscriber(subscriber) || count == 0) return CUPTI_ERROR_INVALID_PARAMETER;
  for (uint32_t cbid = 1; cbid < count; ++cbid) g_on[domain][cbid] = enable != 0;
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle subscriber) {
  SIM_FAULTS("cuptiEnableAllDomains");
  if (!is_subscriber(subscriber)) return CUPTI_ERROR_INVALID_PARAMETER;
  for (int d = CUPTI_CB_DOMAIN_INVALID + 1; d < CUPTI_CB_DOMAIN_SIZE; ++d)
    cuptiEnableDomain(enable, subscriber, static_cast<CUpti_CallbackDomain>(d));
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiSupportedDomains(size_t* count, CUpti_DomainTable* table) {
  SIM_FAULTS("cuptiSupportedDomains");
  static CUpti_CallbackDomain domains[] = {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CB_DOMAIN_RUNTIME_API,
                                           CUPTI_CB_DOMAIN_RESOURCE};
  if (!count || !table) return CUPTI_ERROR_INVALID_PARAMETER;
  *count = std::size(domains);
  *table = domains;
  return CUPTI_SUCCESS;
}

// Leaves the process as if CUPTI had never been used. What was not flushed goes with it: "CUPTI client needs
// to make sure that required CUDA synchronization and CUPTI activity buffer flush is done before" (header).
SIM_EXPORT CUptiResult CUPTIAPI cuptiFinalize() {
  SIM_FAULTS("cuptiFinalize");
  disable_activity();
  drop_subscriber();
  discard_buffers();
  drop_profilers();
  forget_buffer_callbacks();
  reset_activity_settings();
  Machine::get().clock().reset(Machine::get().virtual_clock());
  return CUPTI_SUCCESS;
}

SIM_EXPORT void cuptisim_report_state(uint32_t cbid, int result, const char* message) {
  const Inside inside;
  CUpti_StateData data{};
  data.notification.result = static_cast<CUptiResult>(result);
  data.notification.message = message;
  call_back(CUPTI_CB_DOMAIN_STATE, cbid, &data);
  if (cbid == CUPTI_CBID_STATE_FATAL_ERROR) cuptiFinalize();
}
