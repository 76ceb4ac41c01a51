// Activity: what CUPTI's callbacks do on the launching thread, and who else is told of launches there.
#include <algorithm>
#include <chrono>

#include "base/stamp_clock.h"
#include "collect/activity.h"
#include "collect/buffers/decoder_bell.h"
#include "collect/records/kernel_names.h"
#include "collect/regions/live_regions.h"
#include "collect/regions/regions.h"
#include "cupti/captures.h"
#include "cupti/cbids.h"
#include "launch/exclusion.h"
#include "launch/launch_gate.h"
#include "launch/launch_params.h"
#include "threads/open_start_end.h"

namespace cuptiprof {
namespace {

constexpr auto kLaunchPatience = std::chrono::milliseconds(200);  // of a launch beside a counted one

bool is_graph_launch(CUpti_CallbackId cbid) noexcept {
  return cbid == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch || cbid == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz;
}

bool is_graph_resource(CUpti_CallbackId cbid) noexcept {
  return (cbid >= CUPTI_CBID_RESOURCE_GRAPH_CREATED && cbid <= CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED) ||
         cbid == CUPTI_CBID_RESOURCE_GRAPH_NODE_UPDATED;
}

bool failed(const CUpti_CallbackData& call) noexcept {
  const auto* result = static_cast<const CUresult*>(call.functionReturnValue);
  return result && *result != CUDA_SUCCESS;
}

}  // namespace

void CUPTIAPI Activity::on_callback(void* user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                                    const void* data) {
  auto& self = *static_cast<Activity*>(user);
  if (!self.x_attached.load(std::memory_order_relaxed)) return;
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API)
    self.on_driver_call(cbid, *static_cast<const CUpti_CallbackData*>(data));
  else if (domain == CUPTI_CB_DOMAIN_RESOURCE)
    self.on_resource(cbid, *static_cast<const CUpti_ResourceData*>(data));
  else if (domain == CUPTI_CB_DOMAIN_STATE)
    self.x_departure.told(cbid, *static_cast<const CUpti_StateData*>(data));
}

void Activity::on_driver_call(CUpti_CallbackId cbid, const CUpti_CallbackData& call) noexcept {
  const bool entry = call.callbackSite == CUPTI_API_ENTER;
  if (is_unload(cbid)) [[unlikely]]
    return on_unload_call(cbid, call);
  if (is_graph_update(cbid)) [[unlikely]] {
    if (!entry && !failed(call)) executable_updated(call);
    return;
  }
  if (is_capture_begin(cbid) || is_capture_end(cbid)) [[unlikely]] {
    g_captures.called(*x_api.load(std::memory_order_acquire), cbid, call);
    if (entry && is_capture_begin(cbid)) tell_observer([](LaunchObserver& o) { o.capture_begins(); });
    return;
  }
  const bool profiler_calls = x_options_seen.load(std::memory_order_acquire)->profiler_calls;
  if (profiler_calls) {
    // The window opens on the way into cuProfilerStart and closes on the way out of cuProfilerStop.
    if (cbid == CUPTI_DRIVER_TRACE_CBID_cuProfilerStart || cbid == CUPTI_DRIVER_TRACE_CBID_cuProfilerStop) {
      const bool start = cbid == CUPTI_DRIVER_TRACE_CBID_cuProfilerStart;
      if (start == entry && x_window_wanted.exchange(start) != start) {
        if (start)
          open_window();
        else
          close_window({});
        tell_observer([start](LaunchObserver& o) { o.window(start); });
      }
      return;
    }
  }
  ThreadSlot* slot = this_thread_slot();
  if ((profiler_calls || x_observed.load(std::memory_order_relaxed)) &&
      !x_enabled.load(std::memory_order_relaxed)) {
    // Nothing is collected now. What was entered before must be left.
    if (slot && entry && g_exclusion.is_armed() && (is_kernel_launch(cbid) || is_graph_launch(cbid))) {
      // It may still be on its way when collection goes on.
      launch_goes_beside(*slot, call.context);
    } else if (slot && !entry) {
      if (slot->counted_by.load(std::memory_order_relaxed)) launch_leaves(*slot, cbid, call, false);
      if (slot->launching.load(std::memory_order_relaxed)) Exclusion::leave(slot->launching);
    }
    return;
  }
  const bool launch = is_kernel_launch(cbid);
  if (!slot) {
    // Counted, so that launches and kernel records can be reconciled; without region and thread.
    if (entry) {
      note_context(call.context);
      slotless_nodes() = 0;
      count(g_beyond_slots);
      if (launch) {
        g_kernel_names.note(call.symbolName);
        count(g_slotless_launches, kernels_launched(cbid, call.functionParams));
      }
    } else if (launch) {
      if (slotless_nodes() != 0) g_captures.launch_captured();
      if (slotless_nodes() != 0 || failed(call))
        g_slotless_launches.fetch_sub(kernels_launched(cbid, call.functionParams), std::memory_order_relaxed);
    }
    return;
  }
  if (entry) {
    note_context(call.context);
    const TaskKey key = g_task_key.load(std::memory_order_relaxed);
    const uint64_t task = key ? key() : 0;
    slot->nodes_created = 0;
    if (launch) {
      g_kernel_names.note(call.symbolName);
      slot->launches.store(
          slot->launches.load(std::memory_order_relaxed) + kernels_launched(cbid, call.functionParams),
          std::memory_order_relaxed);
    }
    if (slot->is_worker.load(std::memory_order_relaxed)) [[unlikely]]
      note_backward_caller(*slot);
    const LaunchOrigin origin = launch_origin(*slot);
    if (!slot->ring.push({.stamp = read_stamp(),
                          .task = task,
                          .origin = origin,
                          .id = call.correlationId,
                          .kind = EventKind::kLaunch},
                         slot->open_regions))
      count(g_region_overflow);
    if (slot->ring.pushed() >= slot->next_wake) {
      slot->next_wake = slot->ring.pushed() + kWakeEvents;
      g_decoder_bell.ring();
    }
    const bool counted = launch && g_launch_gate.is_open() && !g_launch_gate.refuses_name(call.symbolName) &&
                         launch_enters(*slot, cbid, call, task, origin.frame);
    if (!counted && g_exclusion.is_armed() && (launch || is_graph_launch(cbid)))
      launch_goes_beside(*slot, call.context);
  } else {
    if (slot->launching.load(std::memory_order_relaxed)) Exclusion::leave(slot->launching);
    if (!launch) {
      // Launched into a stream that is being captured it became a node.
      if (is_graph_launch(cbid) && slot->nodes_created == 0 && !failed(call)) graph_launched(*slot, call);
      return;
    }
    if (slot->counted_by.load(std::memory_order_relaxed))
      launch_leaves(*slot, cbid, call, slot->nodes_created != 0);
    // The stream was being captured: the launch became a graph node and runs when the graph is launched. Or
    // the driver refused it, and it never runs.
    if (slot->nodes_created != 0) g_captures.launch_captured();
    if (slot->nodes_created != 0 || failed(call))
      slot->launches.store(
          slot->launches.load(std::memory_order_relaxed) - kernels_launched(cbid, call.functionParams),
          std::memory_order_relaxed);
  }
}

void Activity::on_resource(CUpti_CallbackId cbid, const CUpti_ResourceData& data) noexcept {
  if (is_graph_resource(cbid)) {
    if (cbid == CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED) x_graphs.store(true, std::memory_order_relaxed);
    on_graph_changed(cbid, static_cast<const CUpti_GraphData*>(data.resourceDescriptor));
  } else if (cbid == CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING) {
    modules_go();
    g_launch_gate.forget();
  } else if (cbid == CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING) {
    g_captures.stream_ends(data.resourceHandle.stream);
  } else if (cbid == CUPTI_CBID_RESOURCE_CONTEXT_CREATED) {
    note_context(data.context);
  } else if (cbid == CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING) {
    modules_go();
    g_captures.context_ends(data.context);
    for (auto& c : x_contexts)
      if (c.load(std::memory_order_relaxed) == data.context) c.store(nullptr, std::memory_order_relaxed);
    tell_observer([&](LaunchObserver& o) { o.context_ends(data.context); });
  }
}

// Nothing where the calling thread is inside an observer already.
template <typename What>
void Activity::tell_observer(What what) noexcept {
  ThreadSlot* slot = this_thread_slot();
  if (!slot || slot->observing.exchange(true)) return;
  if (LaunchObserver* observer = x_launch_observer.load()) what(*observer);
  slot->observing.store(false, std::memory_order_release);
}

// A launch that is not counted, while others are.
void Activity::launch_goes_beside(ThreadSlot& slot, CUcontext context) noexcept {
  g_exclusion.enter(slot.launching, context, kLaunchPatience);
  if (!g_exclusion.is_resident() || slot.observing.exchange(true)) return;
  // Out of the way until the profiler is stopped: it waits for whoever is on the way.
  Exclusion::leave(slot.launching);
  if (LaunchObserver* observer = x_launch_observer.load())
    observer->make_way(slot.launching, context, kLaunchPatience);
  else
    g_exclusion.enter(slot.launching, context, kLaunchPatience);
  slot.observing.store(false, std::memory_order_release);
}

// `observing` is set before the observer is looked at and `observe` looks at it after taking the observer
// away: one of the two sees the other.
bool Activity::launch_enters(ThreadSlot& slot, CUpti_CallbackId cbid, const CUpti_CallbackData& call,
                             uint64_t task, uint32_t frame) noexcept {
  LaunchObserver* observer = x_launch_observer.load();
  if (LaunchObserver* earlier = slot.counted_by.load(std::memory_order_relaxed)) {
    // The launch hung when its session ended, and nobody saw it leave. Of the running session it would be a
    // launch inside another one: not ours to count.
    if (earlier == observer) return false;
    launch_leaves(slot, cbid, call, true);
  }
  if (slot.observing.load(std::memory_order_relaxed)) return false;  // CUPTI launches inside a call of ours
  if (g_launch_gate.by_line() && g_launch_gate.refuses_line(frame)) return false;
  uint32_t path[OpenRegions::kMax];
  const uint32_t depth = live_region_path(slot, task, path);
  uint32_t beside[LaunchScopes::kMax + OpenOperators::kMax];
  std::span<const uint32_t> scopes = slot.scopes.labels();
  if (g_launch_gate.by_operators()) {
    std::copy(scopes.begin(), scopes.end(), beside);
    scopes = {beside, scopes.size() + slot.operators.labels(beside + scopes.size())};
  }
  if (g_launch_gate.by_path() && g_launch_gate.refuses_path({path, depth}, scopes, g_open_start_end.key()))
    return false;
  slot.observing.store(true);
  observer = x_launch_observer.load();
  if (observer && observer->wants(call.symbolName) &&
      observer->entered(
          {call, cbid, slot.tid.load(std::memory_order_relaxed), {path, depth}, scopes, frame, false})) {
    slot.counted_by.store(observer);
    return true;
  }
  slot.observing.store(false, std::memory_order_release);
  return false;
}

void Activity::launch_leaves(ThreadSlot& slot, CUpti_CallbackId cbid, const CUpti_CallbackData& call,
                             bool captured) noexcept {
  slot.counted_by.load()->left({call, cbid, slot.tid.load(std::memory_order_relaxed), {}, {}, 0, captured});
  slot.counted_by.store(nullptr);
  slot.observing.store(false, std::memory_order_release);
}

bool Activity::observe(const Observers& who) noexcept {
  g_launch_gate.close();
  const LaunchObserver* before = x_launch_observer.exchange(nullptr);
  set_region_observer(nullptr);
  // Whoever is inside an observer now leaves it soon; a launch that hangs must not hang us.
  const bool left = wait_for_observers(std::chrono::seconds(2), before);
  const bool watched = who.keeps_paths || who.regions;
  if (watched) OpenRegions::forget_all();
  set_region_mode(kRegionsWatched, watched);
  g_exclusion.arm(who.launches && who.launches->measures_alone());
  x_observed.store(who.launches != nullptr);
  set_region_observer(who.regions);
  x_launch_observer.store(who.launches);
  if (who.launches && who.launches->looks_at_launches())
    g_launch_gate.open(who.launches->looks_at_regions(), who.launches->looks_at_lines(),
                       who.launches->looks_at_operators());
  return left;
}

bool Activity::is_inside(const LaunchObserver* observer) noexcept {
  for (uint32_t i = 0; i < thread_slot_count(); ++i) {
    const ThreadSlot& slot = thread_slot(i);
    if (slot.state.load() == SlotState::kInUse && observer && slot.counted_by.load() == observer) return true;
  }
  return false;
}

}  // namespace cuptiprof
