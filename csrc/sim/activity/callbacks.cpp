#include "sim/activity/callbacks.h"

#include <cupti_result.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>

#include "sim/activity/buffers.h"
#include "sim/activity/clients.h"
#include "sim/activity/record_sizes.h"
#include "sim/activity/wanted_records.h"
#include "sim/counters/counting.h"
#include "sim/cuptisim.h"
#include "sim/machine/faults.h"
#include "sim/machine/inside.h"
#include "sim/machine/machine.h"

namespace sim {
namespace {

constexpr size_t kMaxCbid = 1024;
std::atomic<ClientSet> g_on[CUPTI_CB_DOMAIN_SIZE][kMaxCbid];

// The client that this handle stands for; none: nobody's.
std::optional<uint32_t> client_of(CUpti_SubscriberHandle handle) {
  if (const uint32_t shared = shared_client(handle)) return shared;
  const bool only =
      handle == reinterpret_cast<CUpti_SubscriberHandle>(&client(0)) && client(0).function.load();
  return only ? std::optional(uint32_t{0}) : std::nullopt;
}

// Callback IDs of a domain in the emulated library; 0: no such domain.
uint32_t cbids_of(CUpti_CallbackDomain domain) {
  switch (domain) {
    case CUPTI_CB_DOMAIN_DRIVER_API:
      return driver_cbids(Machine::get().version());
    case CUPTI_CB_DOMAIN_RUNTIME_API:
      return runtime_cbids(Machine::get().version());
    case CUPTI_CB_DOMAIN_RESOURCE:
      // Updates of graph nodes came with 13.0.
      return Machine::get().version() >= 130000 ? uint32_t{CUPTI_CBID_RESOURCE_SIZE}
                                                : uint32_t{CUPTI_CBID_RESOURCE_GRAPH_NODE_UPDATED};
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

bool subscribed() { return subscribers() != 0; }

bool callback_enabled(CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  return cbid < kMaxCbid && g_on[domain][cbid].load(std::memory_order_relaxed) != 0;
}

void call_back(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data) {
  if (!callback_enabled(domain, cbid)) return;
  const ClientSet clients = g_on[domain][cbid].load();
  for (uint32_t i = 0; i < kClients; ++i) {
    const Callee callee = clients & bit(i) ? client(i).callee() : Callee{};
    if (!callee.function) continue;
    Machine::get().truth.callbacks.fetch_add(1, std::memory_order_relaxed);
    callee.function(callee.user, domain, cbid, data);
  }
}

void resource_callback(CUpti_CallbackId cbid, CUcontext context, CUstream stream, void* descriptor) {
  if (!callback_enabled(CUPTI_CB_DOMAIN_RESOURCE, cbid)) return;
  CUpti_ResourceData data{};
  data.context = context;
  data.resourceHandle.stream = stream;
  data.resourceDescriptor = descriptor;
  call_back(CUPTI_CB_DOMAIN_RESOURCE, cbid, &data);
}

void disable_callbacks(uint32_t who) {
  for (auto& domain : g_on)
    for (auto& on : domain) on.fetch_and(static_cast<ClientSet>(~bit(who)), std::memory_order_relaxed);
}

void drop_subscriber() {
  disable_callbacks(0);
  unsubscribe_alone();
}

}  // namespace sim

using namespace sim;

SIM_EXPORT CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle* subscriber,
                                               CUpti_CallbackFunc function, void* user) {
  SIM_FAULTS("cuptiSubscribe");
  if (!subscriber || !function) return CUPTI_ERROR_INVALID_PARAMETER;
  if (const CUptiResult rc = of_the_only_client(); rc != CUPTI_SUCCESS) return rc;
  if (!subscribe_alone({function, user})) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  *subscriber = reinterpret_cast<CUpti_SubscriberHandle>(&client(0));
  return CUPTI_SUCCESS;
}

namespace {

// CUpti_SubscriberParams up to 13.2 ends here; from 13.3 on a byte follows, allowMultipleSubscribers, padded.
constexpr size_t kParams = offsetof(CUpti_SubscriberParams, oldSubscriberSize) + sizeof(size_t);
constexpr size_t kSharingParams = kParams + 8;

}  // namespace

// As cuptiSubscribe, and names the holder when there is one; not in libraries before 13.0. From 13.3 on one
// of several, if the first one asked for that.
SIM_EXPORT CUptiResult CUPTIAPI cuptiSubscribe_v2(CUpti_SubscriberHandle* subscriber,
                                                  CUpti_CallbackFunc function, void* user,
                                                  CUpti_SubscriberParams* params) {
  SIM_FAULTS("cuptiSubscribe_v2");
  if (Machine::get().version() < 130000) return CUPTI_ERROR_NOT_SUPPORTED;
  const bool newest = Machine::get().version() >= 130300;
  if (params && params->structSize != kParams && !(newest && params->structSize == kSharingParams))
    return CUPTI_ERROR_INVALID_PARAMETER;
  const bool share = newest && params && params->structSize == kSharingParams &&
                     reinterpret_cast<const uint8_t*>(params)[kParams] == 1;
  if (share && fault(CUPTISIM_FAULT_OLD_DRIVER)) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  if (share && !subscriber) return CUPTI_ERROR_INVALID_PARAMETER;
  const CUptiResult rc =
      share ? join(subscriber, function, user) : cuptiSubscribe(subscriber, function, user);
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
  const auto who = client_of(subscriber);
  if (!who) return CUPTI_ERROR_INVALID_PARAMETER;
  *who == 0 ? drop_subscriber() : leave(*who);
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                                    CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  SIM_FAULTS("cuptiEnableCallback");
  const auto who = client_of(subscriber);
  if (!who || cbid == 0 || cbid >= cbids_of(domain)) return CUPTI_ERROR_INVALID_PARAMETER;
  set(g_on[domain][cbid], *who, enable != 0);
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiGetCallbackState(uint32_t* enable, CUpti_SubscriberHandle subscriber,
                                                      CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  SIM_FAULTS("cuptiGetCallbackState");
  const auto who = client_of(subscriber);
  if (!enable || !who || cbid == 0 || cbid >= cbids_of(domain)) return CUPTI_ERROR_INVALID_PARAMETER;
  *enable = (g_on[domain][cbid] & bit(*who)) != 0;
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                                  CUpti_CallbackDomain domain) {
  SIM_FAULTS("cuptiEnableDomain");
  const uint32_t count = cbids_of(domain);
  const auto who = client_of(subscriber);
  if (!who || count == 0) return CUPTI_ERROR_INVALID_PARAMETER;
  for (uint32_t cbid = 1; cbid < count; ++cbid) set(g_on[domain][cbid], *who, enable != 0);
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle subscriber) {
  SIM_FAULTS("cuptiEnableAllDomains");
  if (!client_of(subscriber)) return CUPTI_ERROR_INVALID_PARAMETER;
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
// With several subscribers it does nothing.
SIM_EXPORT CUptiResult CUPTIAPI cuptiFinalize() {
  SIM_FAULTS("cuptiFinalize");
  if (subscribers() > 1) return CUPTI_SUCCESS;
  for (uint32_t i = 0; i < kClients; ++i) disable_activity(i);
  drop_subscriber();
  discard_buffers();
  drop_profilers();
  forget_clients();
  forget_buffers(0);
  reset_activity_settings(0);
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
