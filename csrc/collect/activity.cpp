#include "collect/activity.h"

#include <chrono>
#include <string>
#include <thread>

#include "base/error.h"
#include "collect/records/kernel_names.h"
#include "collect/regions/live_regions.h"
#include "collect/regions/regions.h"
#include "collect/regions/scope_labels.h"
#include "collect/setup/clock_source.h"
#include "collect/setup/kinds.h"
#include "cupti/api.h"
#include "cupti/call.h"
#include "cupti/captures.h"
#include "cupti/cbids.h"
#include "cupti/detach.h"
#include "launch/exclusion.h"

namespace cuptiprof {
namespace {

constexpr auto kClosingPatience = std::chrono::seconds(2);

// A copy that is never freed; sessions with the same options share it.
const ActivityOptions* kept_for_good(const ActivityOptions& options) {
  static auto& kept = *new std::vector<std::unique_ptr<const ActivityOptions>>;  // one session at a time
  for (const auto& known : kept)
    if (*known == options) return known.get();
  return kept.emplace_back(std::make_unique<ActivityOptions>(options)).get();
}

bool is_host_side(CUpti_ActivityKind kind) {
  return kind == CUPTI_ACTIVITY_KIND_RUNTIME || kind == CUPTI_ACTIVITY_KIND_DRIVER ||
         kind == CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
}

}  // namespace

Activity::Activity() {
  set_context_source([]() noexcept { return instance().current_context(); });
}

Activity& Activity::instance() {
  static Activity* activity = new Activity;
  return *activity;
}

void Activity::attach(std::shared_ptr<const Api> api, ActivityOptions options) {
  reserve_thread_slots();
  g_kernel_names.reset();
  const Api& a = *api;
  const Subscription subscription = subscribe(a, &Activity::on_callback, this, options.sharing);
  x_subscriber = subscription.handle;
  x_shared.store(subscription.shared ? subscription.handle : nullptr);
  x_departure.begin();
  x_owner = std::move(api);
  x_api.store(x_owner.get());
  x_options = std::move(options);
  x_options_seen.store(kept_for_good(x_options));
  try {
    int devices = 0;
    x_cuda_was_up = a.cuDeviceGetCount && a.cuDeviceGetCount(&devices) == CUDA_SUCCESS;
    use_run_clock(x_owner, calls());
    take_back_buffers();
    x_pool.configure(x_options.buffer_bytes, x_options.buffer_count);
    x_settings.apply(calls(), x_options.settings);
    check(a, register_buffers(), "cuptiActivityRegisterCallbacks");
    x_attached.store(true);
    for (auto& c : x_contexts) c.store(nullptr, std::memory_order_relaxed);
    // Launches whose return an earlier subscription did not see any more are not on their way.
    for (uint32_t i = 0; i < thread_slot_count(); ++i) Exclusion::leave(thread_slot(i).launching);
    x_window_wanted.store(false);
    x_held.store(false);
    x_losses.reset();
    count(x_losses.earlier_session, x_left_over);
    g_region_overflow.store(0);
    g_beyond_slots.store(0);
    g_labels_lost.store(0);
    g_scopes_lost.store(0);
    g_metadata_dropped.store(0);
    g_metadata_as_text.store(0);
    x_kernels_lost.store(0);
    x_graph_work_lost.store(0);
    x_watch.begin();
    x_returned_at.store(0);
    x_attached_at = now_ns();
    x_waits_left_out.store(0);
    if (x_owner->simulated) x_graphs.store(false);  // its machine may be another one than before
    x_launches_before = 0;
    x_launches_before = launches();
    // As long as the session lives: names and contexts also go away while nothing is collected.
    enable_callback(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING, true);
    enable_callback(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING, true);
    for (const CUpti_CallbackId cbid : driver_unload_cbids())
      enable_callback(CUPTI_CB_DOMAIN_DRIVER_API, cbid, true);
    // An older library has no such domain.
    enable_callback(CUPTI_CB_DOMAIN_STATE, CUPTI_CBID_STATE_FATAL_ERROR, true);
    enable_callback(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED, true);
    x_follows_nodes.store(follows_nodes());
    if (follows_nodes()) follow_nodes();
    // Captures begin and end at any time.
    g_captures.forget_all();
    enable_callback(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING, true);
    for (const CUpti_CallbackId cbid : driver_capture_cbids())
      enable_callback(CUPTI_CB_DOMAIN_DRIVER_API, cbid, true);
    x_departure.watch();
    if (x_options.profiler_calls) set_callbacks(true);
  } catch (...) {
    detach();
    throw;
  }
}

void Activity::enable() {
  x_departure.look(*x_owner, x_subscriber);
  if (x_departure.happened())
    throw Error(ErrorKind::kSession, x_departure.text(),
                "stop() keeps what came before; start a new session");
  x_held.store(false);
  if (x_options.profiler_calls && !x_window_wanted.load()) return;  // the program's call opens it
  if (x_enabled.exchange(true)) return;
  try {
    set_kinds(true, true);
    if (!x_options.profiler_calls) set_callbacks(true);
    set_region_mode(kRegionsOn, true);
  } catch (...) {
    disable({});
    throw;
  }
}

// On the way into cuProfilerStart. While the session is paused it opens with resume().
void Activity::open_window() noexcept {
  if (x_held.load() || x_enabled.exchange(true)) return;
  set_kinds(true, false);
  set_region_mode(kRegionsOn, true);
  if (x_held.load()) close_window({});  // paused meanwhile, by a thread that saw it closed
}

void Activity::disable(Deadline captures, bool waits) noexcept {
  x_held.store(true);
  const auto deadline = std::chrono::steady_clock::now() + kClosingPatience;
  while (!close_window(captures, waits) && x_closing.load() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // cuProfilerStop, in another thread
}

// Ends collection, by the control path or on the way out of cuProfilerStop. What still runs is waited for
// while its kinds are on, and flushed: CUPTI may keep records whose kind went off before they were complete
// until it is switched on again. False: nothing was collected.
bool Activity::close_window(Deadline captures, bool waits) noexcept {
  if (!x_enabled.load() || x_closing.exchange(true)) return false;
  x_departure.look(*x_owner, x_subscriber);
  if (x_departure.happened()) {
    leave_departed();
    return true;
  }
  const Api& a = *x_api.load();
  for (const auto kind : x_options.kinds)
    if (is_host_side(kind)) calls().disable(kind);
  if (!x_options.follows_launches) note_context(current_context());
  if (waits) synchronize_contexts(captures);
  x_enabled.store(false);
  set_region_mode(kRegionsOn, false);
  // A counted launch that is on its way must be seen to leave.
  if (!x_options.profiler_calls && !x_observed.load()) set_callbacks(false);
  set_kinds(false, false);
  a.cuptiActivityFlushAll(0);
  x_closing.store(false);
  return true;
}

// There is nothing left to switch off.
void Activity::leave_departed() noexcept {
  x_enabled.store(false);
  set_region_mode(kRegionsOn, false);
  x_closing.store(false);
}

void Activity::detach() noexcept {
  if (!x_subscriber) return;
  disable({});
  x_attached.store(false);
  x_departure.look(*x_owner, x_subscriber);
  if (x_departure.happened()) {
    note_finalized(*x_owner);  // what is set up once per process is to be set up again
  } else {
    x_settings.restore(calls());
    x_owner->cuptiUnsubscribe(x_subscriber);
  }
  leave_clock(calls());
  x_subscriber = nullptr;
}

void Activity::set_kinds(bool on, bool throwing) {
  const SubscriberCalls cupti = calls();
  const ActivityOptions& options = *x_options_seen.load();
  for (const auto kind : options.kinds) {
    const CUptiResult rc = on ? enable_kind(cupti, kind, options.all_api_calls) : cupti.disable(kind);
    // Beside what the program does, which is not to end for want of it.
    if (kind == CUPTI_ACTIVITY_KIND_ENVIRONMENT) continue;
    if (rc != CUPTI_SUCCESS && on && throwing)
      check(cupti.api(), rc, "cuptiActivityEnable",
            "activity kind " + std::to_string(static_cast<int>(kind)));
  }
}

bool Activity::enable_callback(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, bool on) {
  const Api& a = *x_api.load();
  const CUptiResult rc = a.cuptiEnableCallback(on ? 1 : 0, x_subscriber, domain, cbid);
  // A library older than the headers does not know the newest calls; it cannot make them either.
  if (rc != CUPTI_SUCCESS && rc != CUPTI_ERROR_INVALID_PARAMETER && on)
    check(a, rc, "cuptiEnableCallback", "callback ID " + std::to_string(cbid));
  return rc == CUPTI_SUCCESS;
}

void Activity::set_callbacks(bool on) {
  const auto enable = [&](std::span<const CUpti_CallbackId> cbids) {
    for (const CUpti_CallbackId cbid : cbids) enable_callback(CUPTI_CB_DOMAIN_DRIVER_API, cbid, on);
  };
  if (x_options.follows_launches) {
    enable(driver_gpu_work_cbids());
    if (x_options.collects(CUPTI_ACTIVITY_KIND_MEMORY2) ||
        x_options.collects(CUPTI_ACTIVITY_KIND_MEMORY_POOL))
      enable(driver_allocation_cbids());
  } else {
    // Launches do not tell us.
    enable_callback(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED, on);
  }
  if (x_options.profiler_calls) {
    enable_callback(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuProfilerStart, on);
    enable_callback(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuProfilerStop, on);
  }
  // Where nodes are followed it stays on.
  if (on || !x_follows_nodes.load())
    enable_callback(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, on);
}

}  // namespace cuptiprof
