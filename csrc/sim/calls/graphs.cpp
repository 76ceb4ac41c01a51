#include "sim/calls/graphs.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "sim/activity/wanted_records.h"
#include "sim/calls/graph_nodes.h"
#include "sim/calls/run_work.h"
#include "sim/machine/faults.h"
#include "sim/machine/stream_captures.h"

namespace sim {
namespace {

// An executable graph keeps its own copy of the nodes, with their own IDs: those that records carry.
struct Executable {
  uint32_t id;
  std::shared_ptr<Graph> of;  // what it was instantiated from, for finding a node of its
  Graph own;
};

struct Graphs {
  std::mutex mutex;  // guards the rest
  std::map<uint32_t, std::shared_ptr<Graph>> by_number;
  std::map<uint32_t, std::shared_ptr<Executable>> executables;
  std::vector<std::shared_ptr<void>> old;  // until reset: handles given to callbacks stay what they were
};
Graphs& graphs() {
  static auto* g = new Graphs;  // never destroyed (Machine::get)
  return *g;
}

std::shared_ptr<Graph> find(uint32_t number) {
  const std::lock_guard lock(graphs().mutex);
  const auto at = graphs().by_number.find(number);
  return at == graphs().by_number.end() ? nullptr : at->second;
}

std::shared_ptr<Executable> find_executable(uint32_t number) {
  const std::lock_guard lock(graphs().mutex);
  const auto at = graphs().executables.find(number);
  return at == graphs().executables.end() ? nullptr : at->second;
}

CUgraphExec handle(const Executable& e) { return reinterpret_cast<CUgraphExec>(const_cast<Executable*>(&e)); }

void keep(uint32_t number, std::shared_ptr<Graph> graph) {
  Graphs& all = graphs();
  const std::lock_guard lock(all.mutex);
  auto& slot = all.by_number[number];
  if (slot) {
    all.old.push_back(slot);
    // What was made of the earlier graph of this number is not this one's.
    if (const auto e = all.executables.find(number); e != all.executables.end() && e->second->of == slot) {
      all.old.push_back(e->second);
      all.executables.erase(e);
    }
  }
  slot = std::move(graph);
}

}  // namespace

uint32_t begin_capture(const Call& c) {
  if (c.op.graph_id == 0) return CUDA_ERROR_INVALID_VALUE;
  auto graph = std::make_shared<Graph>(Graph{c.op.graph_id, {}});
  if (const uint32_t rc =
          begin_sequence(c.context, c.stream, graph->id, graph, static_cast<CUstreamCaptureMode>(c.op.value));
      rc != CUDA_SUCCESS)
    return rc;
  CUpti_GraphData data{};
  data.graph = handle(*graph);
  graph_callback(CUPTI_CBID_RESOURCE_GRAPH_CREATED, c, data);
  return CUDA_SUCCESS;
}

uint32_t end_capture(const Call& c) {
  Captured ended;
  if (const uint32_t rc = end_sequence(c.context, c.stream, ended); rc != CUDA_SUCCESS) return rc;
  keep(ended.graph_id, std::static_pointer_cast<Graph>(ended.graph));
  return CUDA_SUCCESS;
}

void capture_node(const Call& c, const std::shared_ptr<void>& into) {
  add_work_node(c, *static_cast<Graph*>(into.get()));
}

uint32_t create_graph(const Call& c) {
  if (c.op.graph_id == 0) return CUDA_ERROR_INVALID_VALUE;
  auto graph = std::make_shared<Graph>(Graph{c.op.graph_id, {}});
  CUpti_GraphData data{};
  data.graph = handle(*graph);
  graph_callback(CUPTI_CBID_RESOURCE_GRAPH_CREATED, c, data);
  keep(c.op.graph_id, std::move(graph));
  return CUDA_SUCCESS;
}

uint32_t add_node(const Call& c) {
  const auto graph = find(c.op.graph_id);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  add_work_node(c, *graph);
  return CUDA_SUCCESS;
}

uint32_t add_child_graph(const Call& c) {
  const auto graph = find(c.op.graph_id), child = find(c.op.value);
  if (!graph || !child || graph == child) return CUDA_ERROR_INVALID_VALUE;
  add_child_node(c, *graph, *child);
  return CUDA_SUCCESS;
}

uint32_t clone_graph(const Call& c) {
  const auto original = find(c.op.value);
  if (!original || c.op.graph_id == 0 || c.op.graph_id == c.op.value) return CUDA_ERROR_INVALID_VALUE;
  auto clone = std::make_shared<Graph>(Graph{c.op.graph_id, {}});
  CUpti_GraphData data{};
  data.graph = handle(*clone);
  graph_callback(CUPTI_CBID_RESOURCE_GRAPH_CREATED, c, data);
  clone_nodes(c, *original, *clone, nullptr);
  data.originalGraph = handle(*original);
  graph_callback(CUPTI_CBID_RESOURCE_GRAPH_CLONED, c, data);
  keep(c.op.graph_id, std::move(clone));
  return CUDA_SUCCESS;
}

uint32_t destroy_node(const Call& c) {
  const auto graph = find(c.op.graph_id);
  if (!graph || c.op.value >= graph->nodes.size()) return CUDA_ERROR_INVALID_VALUE;
  const auto at = graph->nodes.begin() + c.op.value;
  tell_node_ends(c, *graph, **at);
  const std::lock_guard lock(graphs().mutex);
  graphs().old.push_back(std::shared_ptr<Node>(std::move(*at)));
  graph->nodes.erase(at);
  return CUDA_SUCCESS;
}

uint32_t destroy_graph(const Call& c) {
  const auto graph = find(c.op.graph_id);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  for (const auto& node : graph->nodes) tell_node_ends(c, *graph, *node);
  CUpti_GraphData data{};
  data.graph = handle(*graph);
  graph_callback(CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING, c, data);
  const std::lock_guard lock(graphs().mutex);
  graphs().old.push_back(graph);
  graphs().by_number.erase(c.op.graph_id);
  return CUDA_SUCCESS;
}

bool needs_instantiation(uint32_t number) {
  const std::lock_guard lock(graphs().mutex);
  return graphs().by_number.contains(number) && !graphs().executables.contains(number);
}

CUgraphExec executable_handle(uint32_t number) {
  const auto executable = find_executable(number);
  return executable ? handle(*executable) : nullptr;
}

uint32_t instantiate_graph(const Call& c) {
  const auto graph = find(c.op.graph_id);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  const uint32_t number = c.op.value ? c.op.value : c.op.graph_id;
  auto executable = std::make_shared<Executable>(Executable{number, graph, {number, {}}});
  CUpti_GraphData data{};
  data.graph = handle(*graph);
  data.graphExec = handle(*executable);
  graph_callback(CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING, c, data);
  clone_nodes(c, *graph, executable->own, data.graphExec);
  {
    const std::lock_guard lock(graphs().mutex);
    auto& slot = graphs().executables[number];
    if (slot) graphs().old.push_back(slot);
    slot = executable;
  }
  graph_callback(CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED, c, data);
  return CUDA_SUCCESS;
}

uint32_t update_executable(const Call& c) {
  const auto executable = find_executable(c.op.graph_id);
  const auto graph = find(c.op.value);
  if (!executable || !graph) return CUDA_ERROR_INVALID_VALUE;
  return update_nodes(c, *graph, executable->own, handle(*executable)) ? CUDA_SUCCESS
                                                                       : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

uint32_t set_executable_node(const Call& c) {
  const auto executable = find_executable(c.op.graph_id);
  if (!executable || c.op.value >= executable->own.nodes.size()) return CUDA_ERROR_INVALID_VALUE;
  Node& node = *executable->own.nodes[c.op.value];
  // "hNode must not have been removed from the original graph" (cuda.h, cuGraphExecKernelNodeSetParams).
  if (node.child || c.op.value >= executable->of->nodes.size()) return CUDA_ERROR_INVALID_VALUE;
  set_node(c, node, *executable->of->nodes[c.op.value], handle(*executable));
  return CUDA_SUCCESS;
}

uint32_t destroy_executable(const Call& c) {
  const auto executable = find_executable(c.op.graph_id);
  if (!executable) return CUDA_ERROR_INVALID_VALUE;
  CUpti_GraphData data{};
  data.graphExec = handle(*executable);
  graph_callback(CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING, c, data);
  const std::lock_guard lock(graphs().mutex);
  graphs().old.push_back(executable);
  graphs().executables.erase(c.op.graph_id);
  return CUDA_SUCCESS;
}

uint32_t launch_graph(const Call& c) {
  const auto executable = find_executable(c.op.graph_id);
  if (!executable)
    // A recorded call: its nodes come one by one, with their own times.
    return c.op.flags & CUPTISIM_API_TIMES ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  if (const Captured by = captured(c.context, c.stream); by.graph) {
    if (by.invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    add_child_node(c, *static_cast<Graph*>(by.graph.get()), executable->own);
    return CUDA_SUCCESS;
  }
  // One record for the whole launch, none for its nodes; or one for each node.
  const bool whole = kind_enabled(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, *c.context);
  const Recording of_nodes = whole || c.op.flags & CUPTISIM_NO_RECORD ? Recording::kNo : Recording::kYes;
  Placed span{0, 0};
  uint32_t rc = CUDA_SUCCESS;
  for_each_work(executable->own, [&](const Node& node) {
    if (rc != CUDA_SUCCESS) return;
    Placed at{};
    rc = run_work(
        {node.op, *c.context, c.stream, c.correlation, c.begin, node.id, executable->id, {}, node.source},
        of_nodes, at);
    span.start = span.end == 0 ? at.start : std::min(span.start, at.start);
    span.end = std::max(span.end, at.end);
  });
  if (rc != CUDA_SUCCESS) return rc;
  if (whole && span.end != 0 && !(c.op.flags & CUPTISIM_NO_RECORD)) emit_graph_record(c, span);
  return CUDA_SUCCESS;
}

void clear_graphs() {
  const std::lock_guard lock(graphs().mutex);
  graphs().by_number.clear();
  graphs().executables.clear();
  graphs().old.clear();
  number_nodes_from_one();
  clear_captures();
}

}  // namespace sim

using namespace sim;

SIM_EXPORT CUptiResult CUPTIAPI cuptiGetGraphNodeId(CUgraphNode node, uint64_t* id) {
  SIM_FAULTS("cuptiGetGraphNodeId");
  if (!node || !id) return CUPTI_ERROR_INVALID_PARAMETER;
  *id = reinterpret_cast<const Node*>(node)->id;
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiGetGraphId(CUgraph graph, uint32_t* id) {
  SIM_FAULTS("cuptiGetGraphId");
  if (!graph || !id) return CUPTI_ERROR_INVALID_PARAMETER;
  *id = reinterpret_cast<const Graph*>(graph)->id;
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiGetGraphExecId(CUgraphExec executable, uint32_t* id) {
  SIM_FAULTS("cuptiGetGraphExecId");
  if (!executable || !id) return CUPTI_ERROR_INVALID_PARAMETER;
  *id = reinterpret_cast<const Executable*>(executable)->id;
  return CUPTI_SUCCESS;
}
