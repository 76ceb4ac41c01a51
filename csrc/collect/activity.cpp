#include "collect/activity.h"

#include <chrono>
#include <mutex>
#include <string>
#include <unordered_set>

#include "base/clock.h"
#include "base/error.h"
#include "collect/decoder.h"
#include "collect/live_regions.h"
#include "collect/regions.h"
#include "cupti/api.h"
#include "cupti/call.h"
#include "cupti/cbids.h"
#include "cupti/exclusion.h"
#include "cupti/launch_gate.h"

namespace cuptiprof {
namespace {

// The library whose clock simulated records carry.
std::atomic<const Api*> g_clock_api{nullptr};

constexpr auto kLaunchPatience = std::chrono::milliseconds(200);  // of a launch beside a counted one

bool is_graph_launch(CUpti_CallbackId cbid) noexcept {
  return cbid == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch || cbid == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz;
}

int64_t library_clock() {
  uint64_t t = 0;
  g_clock_api.load(std::memory_order_relaxed)->cuptiGetTimestamp(&t);
  return static_cast<int64_t>(t);
}

uint64_t CUPTIAPI run_clock() { return static_cast<uint64_t>(monotonic_ns()); }

// Once per process and library, before any kind is enabled: registering again corrupts the first records of
// the later session. A library that refuses keeps its own clock, and regions are then stamped with that.
void set_clock(const std::shared_ptr<const Api>& api) {
  static std::mutex mutex;  // guards `registered`; held over no other CUPTI user's call
  static std::unordered_set<std::string> registered;    // libraries that use our clock
  static std::vector<std::shared_ptr<const Api>> kept;  // a clock source must outlive every reader
  const std::lock_guard lock(mutex);
  if (!api->simulated) {
    if (registered.contains(api->path)) return g_clock_source.store(nullptr);
    if (api->cuptiActivityRegisterTimestampCallback &&
        api->cuptiActivityRegisterTimestampCallback(&run_clock) == CUPTI_SUCCESS) {
      registered.insert(api->path);
      return g_clock_source.store(nullptr);
    }
  }
  kept.push_back(api);
  g_clock_api.store(api.get());
  g_clock_source.store(&library_clock);
}

bool is_host_side(CUpti_ActivityKind kind) {
  return kind == CUPTI_ACTIVITY_KIND_RUNTIME || kind == CUPTI_ACTIVITY_KIND_DRIVER;
}

}  // namespace

// Called by regions and by CUPTI's threads when the decoder has something to look at.
void wake_decoder() noexcept { Activity::instance().pool().wake(); }

Activity& Activity::instance() {
  static Activity* activity = new Activity;
  return *activity;
}

void Activity::attach(std::shared_ptr<const Api> api, ActivityOptions options) {
  reserve_thread_slots();
  const Api& a = *api;
  CUpti_SubscriberHandle subscriber = nullptr;
  check(a, a.cuptiSubscribe(&subscriber, &Activity::on_callback, this), "cuptiSubscribe");
  x_subscriber = subscriber;
  x_owner = std::move(api);
  x_api.store(x_owner.get());
  x_options = std::move(options);
  try {
    if (a.cuptiSetThreadIdType) a.cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
    set_clock(x_owner);
    if (a.cuptiActivitySetAttribute) {
      // CUPTI need not clear our buffers on the launching thread: they are reused as they are, and records
      // carry their kind.
      uint8_t zeroed = 1;
      size_t size = sizeof zeroed;
      a.cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &zeroed);
    }
    check(a, a.cuptiActivityRegisterCallbacks(&Activity::on_buffer_requested, &Activity::on_buffer_completed),
          "cuptiActivityRegisterCallbacks");
    x_attached.store(true);
    for (auto& c : x_contexts) c.store(nullptr, std::memory_order_relaxed);
    // Launches whose return an earlier subscription did not see any more are not on their way.
    for (uint32_t i = 0; i < thread_slot_count(); ++i) Exclusion::leave(thread_slot(i).launching);
    x_losses.reset();
    g_region_overflow.store(0);
    x_kernels_lost.store(0);
    x_launches_before = 0;
    x_launches_before = launches();
    // As long as the session lives: names and contexts also go away while nothing is collected.
    enable_callback(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING, true);
    enable_callback(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING, true);
    if (x_options.profiler_calls) set_callbacks(true);
  } catch (...) {
    detach();
    throw;
  }
}

void Activity::enable() {
  if (x_enabled.exchange(true)) return;
  try {
    set_kinds(true, true);
    if (!x_options.profiler_calls) set_callbacks(true);
    if (x_options.attribution == Attribution::kExternal)
      enable_external_correlation(*x_api.load(), x_options.collects(CUPTI_ACTIVITY_KIND_DRIVER));
    g_regions_on.store(true);
  } catch (...) {
    disable();
    throw;
  }
}

void Activity::disable() noexcept {
  if (!x_enabled.exchange(false)) return;
  g_regions_on.store(false);
  const Api& a = *x_api.load();
  if (x_options.attribution == Attribution::kExternal)
    disable_external_correlation(a, x_options.collects(CUPTI_ACTIVITY_KIND_DRIVER));
  for (const auto kind : x_options.kinds)
    if (is_host_side(kind)) a.cuptiActivityDisable(kind);
  // A counted launch that is on its way must be seen to leave.
  if (!x_options.profiler_calls && !x_observed.load()) set_callbacks(false);
  set_kinds(false, false);
}

void Activity::detach() noexcept {
  if (!x_subscriber) return;
  disable();
  x_attached.store(false);
  x_owner->cuptiUnsubscribe(x_subscriber);
  x_subscriber = nullptr;
}

void Activity::set_kinds(bool on, bool throwing) {
  const Api& a = *x_api.load();
  for (const auto kind : x_options.kinds) {
    const CUptiResult rc = on ? a.cuptiActivityEnable(kind) : a.cuptiActivityDisable(kind);
    if (rc != CUPTI_SUCCESS && on && throwing)
      check(a, rc, "cuptiActivityEnable", "activity kind " + std::to_string(static_cast<int>(kind)));
  }
  if (on && x_options.latency_timestamps && a.cuptiActivityEnableLatencyTimestamps)
    a.cuptiActivityEnableLatencyTimestamps(1);
}

void Activity::enable_callback(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, bool on) {
  const Api& a = *x_api.load();
  const CUptiResult rc = a.cuptiEnableCallback(on ? 1 : 0, x_subscriber, domain, cbid);
  // A library older than the headers does not know the newest calls; it cannot make them either.
  if (rc != CUPTI_SUCCESS && rc != CUPTI_ERROR_INVALID_PARAMETER && on)
    check(a, rc, "cuptiEnableCallback", "callback ID " + std::to_string(cbid));
}

void Activity::set_callbacks(bool on) {
  if (x_options.attribution == Attribution::kCallback)
    for (const CUpti_CallbackId cbid : driver_gpu_work_cbids())
      enable_callback(CUPTI_CB_DOMAIN_DRIVER_API, cbid, on);
  else
    enable_callback(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED,
                    on);  // launches do not tell us
  if (x_options.profiler_calls) {
    enable_callback(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuProfilerStart, on);
    enable_callback(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuProfilerStop, on);
  }
  enable_callback(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, on);
}

void CUPTIAPI Activity::on_buffer_requested(uint8_t** buffer, size_t* size, size_t* max_records) {
  *max_records = 0;
  *buffer = instance().x_pool.acquire(size);
}

void CUPTIAPI Activity::on_buffer_completed(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  Activity& self = instance();
  if (!buffer) return;
  if (self.x_pool.complete(buffer, valid)) return;
  self.count_discarded(buffer, valid);
  self.x_pool.release(buffer);
}

void Activity::count_discarded(uint8_t* buffer, size_t valid) noexcept {
  const Api* api = x_api.load(std::memory_order_acquire);
  CUpti_Activity* record = nullptr;
  uint64_t records = 0, kernels = 0;
  while (api->cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    ++records;
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || record->kind == CUPTI_ACTIVITY_KIND_KERNEL)
      kernels += reinterpret_cast<const CUpti_ActivityKernel10*>(record)->graphNodeId == 0;
  }
  count(x_losses.pool_exhausted, records);
  count(x_kernels_lost, kernels);
}

void CUPTIAPI Activity::on_callback(void* user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                                    const void* data) {
  auto& self = *static_cast<Activity*>(user);
  if (!self.x_attached.load(std::memory_order_relaxed)) return;
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API)
    self.on_driver_call(cbid, *static_cast<const CUpti_CallbackData*>(data));
  else if (domain == CUPTI_CB_DOMAIN_RESOURCE)
    self.on_resource(cbid, *static_cast<const CUpti_ResourceData*>(data));
}

void Activity::on_driver_call(CUpti_CallbackId cbid, const CUpti_CallbackData& call) noexcept {
  const bool entry = call.callbackSite == CUPTI_API_ENTER;
  if (x_options.profiler_calls) {
    // The window opens on the way into cuProfilerStart and closes on the way out of cuProfilerStop.
    if (cbid == CUPTI_DRIVER_TRACE_CBID_cuProfilerStart || cbid == CUPTI_DRIVER_TRACE_CBID_cuProfilerStop) {
      const bool start = cbid == CUPTI_DRIVER_TRACE_CBID_cuProfilerStart;
      if (start == entry && x_enabled.exchange(start) != start) {
        set_kinds(start, false);
        g_regions_on.store(start);
        if (ThreadSlot* slot = this_thread_slot(); slot && !slot->observing.exchange(true)) {
          if (LaunchObserver* observer = x_launch_observer.load()) observer->window(start);
          slot->observing.store(false, std::memory_order_release);
        }
      }
      return;
    }
  }
  ThreadSlot* slot = this_thread_slot();
  if ((x_options.profiler_calls || x_observed.load(std::memory_order_relaxed)) &&
      !x_enabled.load(std::memory_order_relaxed)) {
    // Nothing is collected now. What was entered before must be left.
    if (slot && entry && g_exclusion.is_armed() && (is_kernel_launch(cbid) || is_graph_launch(cbid))) {
      // It may still be on its way when collection goes on.
      g_exclusion.enter(slot->launching, call.context, kLaunchPatience);
    } else if (slot && !entry) {
      if (slot->counted_by.load(std::memory_order_relaxed)) launch_leaves(*slot, cbid, call, false);
      if (slot->launching.load(std::memory_order_relaxed)) Exclusion::leave(slot->launching);
    }
    return;
  }
  if (!slot) {
    if (entry) count(g_region_overflow);
    return;
  }
  const bool launch = is_kernel_launch(cbid);
  if (entry) {
    note_context(call.context);
    const TaskKey key = g_task_key.load(std::memory_order_relaxed);
    const uint64_t task = key ? key() : 0;
    slot->nodes_created = 0;
    if (launch)
      slot->launches.store(slot->launches.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (!slot->ring.push({now_ns(), task, nullptr, call.correlationId, EventKind::kLaunch},
                         slot->open_regions))
      count(g_region_overflow);
    if (slot->ring.pushed() >= slot->next_wake) {
      slot->next_wake = slot->ring.pushed() + kRingEvents / 4;
      x_pool.wake();
    }
    const bool counted = launch && g_launch_gate.is_open() && !g_launch_gate.refuses_name(call.symbolName) &&
                         launch_enters(*slot, cbid, call, task);
    if (!counted && g_exclusion.is_armed() && (launch || is_graph_launch(cbid)))
      g_exclusion.enter(slot->launching, call.context, kLaunchPatience);
  } else {
    if (slot->launching.load(std::memory_order_relaxed)) Exclusion::leave(slot->launching);
    if (!launch) return;
    if (slot->counted_by.load(std::memory_order_relaxed))
      launch_leaves(*slot, cbid, call, slot->nodes_created != 0);
    // The stream was being captured: the launch became a graph node and runs when the graph is launched. Or
    // the driver refused it, and it never runs.
    const auto* result = static_cast<const CUresult*>(call.functionReturnValue);
    if (slot->nodes_created != 0 || (result && *result != CUDA_SUCCESS))
      slot->launches.store(slot->launches.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  }
}

void Activity::on_resource(CUpti_CallbackId cbid, const CUpti_ResourceData& data) noexcept {
  if (cbid == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED) {
    if (ThreadSlot* slot = this_thread_slot()) ++slot->nodes_created;
  } else if (cbid == CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING) {
    count(g_module_unloads);
    g_launch_gate.forget();
  } else if (cbid == CUPTI_CBID_RESOURCE_CONTEXT_CREATED) {
    note_context(data.context);
  } else if (cbid == CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING) {
    for (auto& c : x_contexts)
      if (c.load(std::memory_order_relaxed) == data.context) c.store(nullptr, std::memory_order_relaxed);
    ThreadSlot* slot = this_thread_slot();
    if (!slot || slot->observing.exchange(true)) return;
    if (LaunchObserver* observer = x_launch_observer.load()) observer->context_ends(data.context);
    slot->observing.store(false, std::memory_order_release);
  }
}

// `observing` is set before the observer is looked at and `observe` looks at it after taking the observer
// away: one of the two sees the other.
bool Activity::launch_enters(ThreadSlot& slot, CUpti_CallbackId cbid, const CUpti_CallbackData& call,
                             uint64_t task) noexcept {
  LaunchObserver* observer = x_launch_observer.load();
  if (LaunchObserver* earlier = slot.counted_by.load(std::memory_order_relaxed)) {
    // The launch hung when its session ended, and nobody saw it leave. Of the running session it would be a
    // launch inside another one: not ours to count.
    if (earlier == observer) return false;
    launch_leaves(slot, cbid, call, true);
  }
  if (slot.observing.load(std::memory_order_relaxed)) return false;  // CUPTI launches inside a call of ours
  uint32_t path[OpenRegions::kMax];
  const uint32_t depth = live_region_path(slot, task, path);
  if (g_launch_gate.by_path() && g_launch_gate.refuses_path({path, depth})) return false;
  slot.observing.store(true);
  observer = x_launch_observer.load();
  if (observer && observer->wants(call.symbolName) &&
      observer->entered({call, cbid, slot.tid.load(std::memory_order_relaxed), {path, depth}, false})) {
    slot.counted_by.store(observer);
    return true;
  }
  slot.observing.store(false, std::memory_order_release);
  return false;
}

void Activity::launch_leaves(ThreadSlot& slot, CUpti_CallbackId cbid, const CUpti_CallbackData& call,
                             bool captured) noexcept {
  slot.counted_by.load()->left({call, cbid, slot.tid.load(std::memory_order_relaxed), {}, captured});
  slot.counted_by.store(nullptr);
  slot.observing.store(false, std::memory_order_release);
}

bool Activity::observe(LaunchObserver* launches, RegionObserver* regions_as_such, bool regions) noexcept {
  g_launch_gate.close();
  const LaunchObserver* before = x_launch_observer.exchange(nullptr);
  set_region_observer(nullptr);
  // Whoever is inside an observer now leaves it soon; a launch that hangs must not hang us.
  const bool left = wait_for_observers(std::chrono::seconds(2), before);
  const bool wanted = regions || regions_as_such;
  if (wanted) OpenRegions::forget_all();
  g_open_regions_wanted.store(wanted);
  g_exclusion.arm(launches && launches->measures_alone());
  x_observed.store(launches != nullptr);
  set_region_observer(regions_as_such);
  x_launch_observer.store(launches);
  if (launches && launches->looks_at_launches()) g_launch_gate.open(launches->looks_at_regions());
  return left;
}

bool Activity::is_inside(const LaunchObserver* observer) noexcept {
  for (uint32_t i = 0; i < thread_slot_count(); ++i) {
    const ThreadSlot& slot = thread_slot(i);
    if (slot.state.load() == 1 && observer && slot.counted_by.load() == observer) return true;
  }
  return false;
}

void Activity::note_context(CUcontext context) noexcept {
  if (!context) return;
  for (auto& c : x_contexts) {
    CUcontext known = c.load(std::memory_order_relaxed);
    if (known == context) return;
    if (!known && c.compare_exchange_strong(known, context, std::memory_order_relaxed)) return;
    if (known == context) return;
  }
}

CUcontext Activity::current_context() const noexcept {
  const Api* a = x_api.load(std::memory_order_acquire);
  CUcontext current = nullptr;
  if (a && a->cuCtxGetCurrent && a->cuCtxGetCurrent(&current) == CUDA_SUCCESS && current) return current;
  for (const auto& c : x_contexts) {
    CUcontext known = c.load(std::memory_order_relaxed);
    if (known && current) return nullptr;  // one of several would be a guess
    if (known) current = known;
  }
  return current;
}

std::vector<CUcontext> Activity::contexts() const {
  std::vector<CUcontext> out;
  for (const auto& c : x_contexts)
    if (CUcontext known = c.load(std::memory_order_relaxed)) out.push_back(known);
  return out;
}

void Activity::synchronize_contexts() noexcept {
  const Api& a = *x_owner;
  if (!a.cuCtxPushCurrent_v2 || !a.cuCtxSynchronize || !a.cuCtxPopCurrent_v2) return;
  for (auto& c : x_contexts) {
    CUcontext context = c.load(std::memory_order_relaxed);
    if (!context || a.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS) continue;
    a.cuCtxSynchronize();  // an error here is the program's own (a failed kernel); its next call reports it
    CUcontext popped;
    a.cuCtxPopCurrent_v2(&popped);
  }
}

uint64_t Activity::launches() const noexcept {
  uint64_t n = 0;
  for (uint32_t i = 0; i < thread_slot_count(); ++i)
    n += thread_slot(i).launches.load(std::memory_order_relaxed);
  return n - x_launches_before;
}

void Activity::complete(Decoder& decoder, int timeout_ms) {
  const Api& a = *x_owner;
  using Clock = std::chrono::steady_clock;
  const auto patience = std::chrono::milliseconds(timeout_ms);
  if (x_options.attribution != Attribution::kCallback) note_context(current_context());
  synchronize_contexts();
  // Launches that come later, from other threads, are not waited for: that could go on for ever.
  const uint64_t wanted = launches();
  auto missing = [&] { return wanted > decoder.kernels_received() + kernels_lost_in_pool(); };
  // Plain flushes first: a forced one also takes kernels that still run, with no end, and they never come
  // again.
  uint64_t decoded = decoder.wait_for_buffers(0, 0);
  for (auto deadline = Clock::now() + patience;;) {
    check(a, a.cuptiActivityFlushAll(0), "cuptiActivityFlushAll");
    decoder.fence();
    if (!missing() || Clock::now() >= deadline) break;
    const uint64_t now_decoded = decoder.wait_for_buffers(decoded, timeout_ms / 10);
    if (now_decoded > decoded) deadline = Clock::now() + patience;  // they still come
    decoded = now_decoded;
  }
  if (missing()) {
    a.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    decoder.fence();
  }
  size_t dropped = 0;
  if (a.cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped) == CUPTI_SUCCESS)
    count(x_losses.cupti_dropped, dropped);
  const uint64_t seen = launches(), received = decoder.kernels_received() + kernels_lost_in_pool();
  x_losses.unreconciled_launches.store(seen > received ? seen - received : 0);
  x_losses.region_overflow.store(g_region_overflow.load());
}

}  // namespace cuptiprof
