#include "cupti/detach.h"

#include <cupti_driver_cbid.h>

#include <map>
#include <mutex>
#include <string>

#include "base/error.h"
#include "cupti/call.h"

namespace cuptiprof {
namespace {

struct Finalizing {
  const Api& api;
  CUpti_SubscriberHandle subscriber = nullptr;
  bool called = false;
  CUptiResult result = CUPTI_SUCCESS;
};

// The thread that finalizes; another thread's callback finds null.
thread_local Finalizing* t_finalizing [[gnu::tls_model("initial-exec")]] = nullptr;

std::mutex g_mutex;  // guards the counts; held over no call of CUPTI's
std::map<std::string, uint32_t>& counts() {
  static auto* counts = new std::map<std::string, uint32_t>;
  return *counts;
}

// CUPTI is safe to leave on the way out of a driver call: this one is our own and does nothing.
void CUPTIAPI on_driver_call(void*, CUpti_CallbackDomain domain, CUpti_CallbackId, const void* data) {
  Finalizing* f = t_finalizing;
  if (!f || f->called || domain != CUPTI_CB_DOMAIN_DRIVER_API) return;
  if (static_cast<const CUpti_CallbackData*>(data)->callbackSite != CUPTI_API_EXIT) return;
  f->called = true;
  f->api.cuptiUnsubscribe(f->subscriber);
  f->result = f->api.cuptiFinalize();
}

}  // namespace

void finalize_cupti(const Api& api) {
  if (!api.cuptiFinalize)
    throw Error(ErrorKind::kCupti, api.path + " has no cuptiFinalize", "stop() leaves it idle");
  Finalizing f{api};
  // Fails when another tool is subscribed, which therefore keeps its CUPTI.
  check(api, api.cuptiSubscribe(&f.subscriber, &on_driver_call, nullptr), "cuptiSubscribe",
        "detach(finalize=True)");
  t_finalizing = &f;
  const CUptiResult enabled = api.cuptiEnableCallback(1, f.subscriber, CUPTI_CB_DOMAIN_DRIVER_API,
                                                      CUPTI_DRIVER_TRACE_CBID_cuDriverGetVersion);
  int version = 0;
  if (enabled == CUPTI_SUCCESS && api.cuDriverGetVersion) api.cuDriverGetVersion(&version);
  t_finalizing = nullptr;
  if (!f.called) {
    // No callback came for the call: from here it is as safe as a finished GPU and empty buffers make it.
    api.cuptiUnsubscribe(f.subscriber);
    f.result = api.cuptiFinalize();
  }
  check(api, f.result, "cuptiFinalize");
  note_finalized(api);
}

void note_finalized(const Api& api) noexcept try {
  const std::lock_guard lock(g_mutex);
  ++counts()[api.path];
} catch (...) {
}

uint32_t times_finalized(const Api& api) {
  const std::lock_guard lock(g_mutex);
  const auto found = counts().find(api.path);
  return found == counts().end() ? 0 : found->second;
}

}  // namespace cuptiprof
