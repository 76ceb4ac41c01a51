// Two ways of joining GPU work to regions, each the least it can be, without anything of the profiler: which
// one is cheaper? Beside the bare collector (native.cpp), whose buffers the records go into.
//
// By callback: the driver's callback of each call that gives the GPU work writes the correlation ID into the
// thread's ring. By external ID: an entry pushes an ID on the thread's stack inside CUPTI and an exit pops
// it; CUPTI writes a record of each such call, and one that joins the ID to it. Both write an event for each
// entry and each exit, as rows of regions need one.
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
#include <dlfcn.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <memory>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

enum Way { kByCallback = 1, kByExternalId = 2 };

constexpr uint32_t kRing = 32768;
constexpr auto kIds = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2;
constexpr CUpti_CallbackId kGpuWork[] = {
#define CP_LAUNCH(name) CUPTI_DRIVER_TRACE_CBID_##name,
#define CP_WORK(name) CUPTI_DRIVER_TRACE_CBID_##name,
#include "cupti/cbids.def"
#undef CP_LAUNCH
#undef CP_WORK
};

struct Event {
  int64_t time;
  uint64_t task;
  uint64_t id;
  uint64_t kind;
};

struct Cupti {
  decltype(&cuptiSubscribe) subscribe = nullptr;
  decltype(&cuptiUnsubscribe) unsubscribe = nullptr;
  decltype(&cuptiEnableCallback) callback = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityEnableDriverApi) driver_api = nullptr;  // CUDA 12.5
  decltype(&cuptiActivityPushExternalCorrelationId) push = nullptr;
  decltype(&cuptiActivityPopExternalCorrelationId) pop = nullptr;
} g_cupti;

CUpti_SubscriberHandle g_subscriber = nullptr;
std::atomic<int> g_way{0};
std::atomic<uint64_t> g_launches{0}, g_ids{0};

thread_local std::unique_ptr<Event[]> t_ring;
thread_local uint32_t t_at = 0;

void note(uint64_t id, uint64_t kind) {
  if (!t_ring) t_ring = std::make_unique<Event[]>(kRing);
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  t_ring[t_at++ % kRing] = {t.tv_sec * 1'000'000'000LL + t.tv_nsec, 0, id, kind};
}

void CUPTIAPI called(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
  const auto& call = *static_cast<const CUpti_CallbackData*>(data);
  if (call.callbackSite != CUPTI_API_ENTER) return;
  g_launches.fetch_add(1, std::memory_order_relaxed);
  note(call.correlationId, 2);
}

template <typename Function>
bool find(void* library, const char* name, Function& out) {
  out = reinterpret_cast<Function>(dlsym(library, name));
  return out != nullptr;
}

int start_callbacks() {
  if (const int rc = g_cupti.subscribe(&g_subscriber, &called, nullptr)) return rc;
  for (const CUpti_CallbackId cbid : kGpuWork)
    g_cupti.callback(1, g_subscriber, CUPTI_CB_DOMAIN_DRIVER_API, cbid);  // an older library knows fewer
  return 0;
}

int start_ids() {
  if (const int rc = g_cupti.enable(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)) return rc;
  if (!g_cupti.driver_api) return g_cupti.enable(CUPTI_ACTIVITY_KIND_DRIVER);
  for (const CUpti_CallbackId cbid : kGpuWork) g_cupti.driver_api(cbid, 1);
  return 0;
}

}  // namespace

// 0, a CUptiResult, or -1: the library cannot be loaded or lacks a function.
EXPORT int join_start(const char* libcupti, int way) {
  void* library = dlopen(libcupti, RTLD_NOW | RTLD_LOCAL);
  if (!library || !find(library, "cuptiSubscribe", g_cupti.subscribe) ||
      !find(library, "cuptiUnsubscribe", g_cupti.unsubscribe) ||
      !find(library, "cuptiEnableCallback", g_cupti.callback) ||
      !find(library, "cuptiActivityEnable", g_cupti.enable) ||
      !find(library, "cuptiActivityDisable", g_cupti.disable) ||
      !find(library, "cuptiActivityPushExternalCorrelationId", g_cupti.push) ||
      !find(library, "cuptiActivityPopExternalCorrelationId", g_cupti.pop))
    return -1;
  find(library, "cuptiActivityEnableDriverApi", g_cupti.driver_api);
  g_launches.store(0);
  g_ids.store(0);
  const int rc = way == kByCallback ? start_callbacks() : start_ids();
  if (rc == 0) g_way.store(way);
  return rc;
}

// How many launches a callback saw, or how many IDs were pushed. Regions must be left by then.
EXPORT int join_stop(uint64_t* seen) {
  const int way = g_way.exchange(0);
  *seen = way == kByCallback ? g_launches.load() : g_ids.load();
  if (way == kByCallback) return g_cupti.unsubscribe(g_subscriber);
  if (g_cupti.driver_api)
    for (const CUpti_CallbackId cbid : kGpuWork) g_cupti.driver_api(cbid, 0);
  else
    g_cupti.disable(CUPTI_ACTIVITY_KIND_DRIVER);
  return g_cupti.disable(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
}

EXPORT void join_enter() {
  const uint64_t id = g_ids.fetch_add(1, std::memory_order_relaxed) + 1;
  note(id, 0);
  if (g_way.load(std::memory_order_relaxed) == kByExternalId) g_cupti.push(kIds, id);
}

EXPORT void join_exit() {
  note(0, 1);
  uint64_t id = 0;
  if (g_way.load(std::memory_order_relaxed) == kByExternalId) g_cupti.pop(kIds, &id);
}
