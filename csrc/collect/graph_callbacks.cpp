// Activity: what CUPTI's callbacks say about CUDA graphs. A node's making and copying is one event each, a
// launch one, however many nodes it has.
#include "base/stamp_clock.h"
#include "collect/activity.h"
#include "collect/buffers/decoder_bell.h"
#include "collect/regions/regions.h"
#include "cupti/api.h"
#include "cupti/cbids.h"

namespace cuptiprof {
namespace {

// What cuGraphLaunch and cuGraphExecUpdate have as their first parameter.
uint64_t executable_of(const CUpti_CallbackData& call) noexcept {
  return call.functionParams
             ? reinterpret_cast<uint64_t>(*static_cast<const CUgraphExec*>(call.functionParams))
             : 0;
}

void push_event(ThreadSlot& slot, const Event& event) noexcept {
  if (!slot.ring.push(event, slot.open_regions)) count(g_region_overflow);
  if (slot.ring.pushed() >= slot.next_wake) {
    slot.next_wake = slot.ring.pushed() + kWakeEvents;
    g_decoder_bell.ring();
  }
}

void push_event(ThreadSlot& slot, EventKind kind, uint64_t object, uint64_t task = 0,
                uint32_t id = 0) noexcept {
  push_event(slot, {.stamp = read_stamp(), .task = task, .object = object, .id = id, .kind = kind});
}

}  // namespace

bool Activity::follows_nodes() const noexcept {
  const ActivityOptions& o = x_options;
  return o.follows_launches && o.records_graph_nodes() && x_owner->cuptiGetGraphNodeId;
}

// As long as the session lives: graphs are captured and instantiated while nothing is collected, too.
void Activity::follow_nodes() {
  for (const CUpti_CallbackId cbid :
       {CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED,
        CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING,
        CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING})
    enable_callback(CUPTI_CB_DOMAIN_RESOURCE, cbid, true);
  if (enable_callback(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPH_NODE_UPDATED, true)) return;
  // Before 13.0 nobody says which nodes an executable graph was updated from; that it was must be enough.
  for (const CUpti_CallbackId cbid : driver_graph_update_cbids())
    enable_callback(CUPTI_CB_DOMAIN_DRIVER_API, cbid, true);
}

uint64_t Activity::node_id(CUgraphNode node) const noexcept {
  uint64_t id = 0;
  const Api& a = *x_api.load(std::memory_order_acquire);
  return node && a.cuptiGetGraphNodeId && a.cuptiGetGraphNodeId(node, &id) == CUPTI_SUCCESS ? id : 0;
}

void Activity::on_graph_changed(CUpti_CallbackId cbid, const CUpti_GraphData* described) noexcept {
  ThreadSlot* slot = this_thread_slot();
  if (cbid == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED) {
    uint32_t& created = slot ? slot->nodes_created : slotless_nodes();
    if (created & kInstantiating) return;  // told of as a clone as well
    ++created;
  }
  if (!slot || !described || !x_follows_nodes.load(std::memory_order_relaxed)) return;
  const CUpti_GraphData& graph = *described;
  const auto executable = reinterpret_cast<uint64_t>(graph.graphExec);
  switch (cbid) {
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED:
      // While nothing is collected no region is known either.
      if (x_enabled.load(std::memory_order_relaxed)) {
        const TaskKey key = g_task_key.load(std::memory_order_relaxed);
        if (const LaunchOrigin origin = launch_origin(*slot); origin != LaunchOrigin{})
          push_event(
              *slot,
              {.stamp = read_stamp(), .task = 0, .origin = origin, .id = 0, .kind = EventKind::kNodeOrigin});
        push_event(*slot, EventKind::kNodeCreated, node_id(graph.node), key ? key() : 0);
      }
      return;
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED:
    case CUPTI_CBID_RESOURCE_GRAPH_NODE_UPDATED:
      return push_event(*slot, EventKind::kNodeCloned, node_id(graph.node), node_id(graph.originalNode),
                        static_cast<uint32_t>(graph.nodeType));
    case CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING:
      return push_event(*slot, EventKind::kNodeDestroyed, node_id(graph.node));
    case CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING:
      slot->nodes_created |= kInstantiating;
      return push_event(*slot, EventKind::kExecutableBegins, 0);
    case CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED:
      slot->nodes_created &= ~kInstantiating;
      return push_event(*slot, EventKind::kExecutableCreated, executable);
    case CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING:
      return push_event(*slot, EventKind::kExecutableDestroyed, executable);
    default:
      return;
  }
}

// On the way out of a call that did not fail, and was not captured.
void Activity::graph_launched(ThreadSlot& slot, const CUpti_CallbackData& call) noexcept {
  x_graphs.store(true, std::memory_order_relaxed);
  if (x_follows_nodes.load(std::memory_order_relaxed))
    push_event(slot, EventKind::kGraphLaunched, executable_of(call), 0, call.correlationId);
}

void Activity::executable_updated(const CUpti_CallbackData& call) noexcept {
  if (ThreadSlot* slot = this_thread_slot())
    push_event(*slot, EventKind::kExecutableChanged, executable_of(call));
}

}  // namespace cuptiprof
