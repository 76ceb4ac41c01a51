#include "sim/calls/graphs.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "sim/activity/callbacks.h"
#include "sim/activity/wanted_records.h"
#include "sim/calls/run_work.h"
#include "sim/machine/faults.h"
#include "sim/machine/name_memory.h"
#include "sim/machine/stream_captures.h"

namespace sim {
namespace {

struct Node {
  cuptisim_op op;
  uint64_t id;
};

// An executable graph keeps its own copy of the nodes, with their own IDs: those that records carry.
struct Executable {
  uint32_t id;
  std::vector<std::unique_ptr<Node>> nodes;
};

struct Graph {
  uint32_t id;
  std::vector<std::unique_ptr<Node>> nodes;
  std::shared_ptr<Executable> executable;
};

struct Graphs {
  std::mutex mutex;  // guards the rest
  std::map<uint32_t, std::shared_ptr<Graph>> by_id;
  std::vector<std::shared_ptr<void>> old;  // until reset: handles given to callbacks stay what they were
  uint64_t nodes = 0;
};
Graphs& graphs() {
  static auto* g = new Graphs;  // never destroyed (Machine::get)
  return *g;
}

std::shared_ptr<Graph> find(uint32_t id) {
  const std::lock_guard lock(graphs().mutex);
  const auto at = graphs().by_id.find(id);
  return at == graphs().by_id.end() ? nullptr : at->second;
}

CUgraphNodeType type_of(const cuptisim_op& op) {
  switch (op.kind) {
    case CUPTISIM_OP_KERNEL:
      return CU_GRAPH_NODE_TYPE_KERNEL;
    case CUPTISIM_OP_MEMSET:
      return CU_GRAPH_NODE_TYPE_MEMSET;
    default:
      return CU_GRAPH_NODE_TYPE_MEMCPY;
  }
}

void graph_callback(CUpti_CallbackId cbid, const Call& c, CUpti_GraphData data) {
  resource_callback(cbid, reinterpret_cast<CUcontext>(c.context), nullptr, &data);
}

}  // namespace

uint32_t begin_capture(const Call& c) {
  if (c.op.graph_id == 0) return CUDA_ERROR_INVALID_VALUE;
  auto graph = std::make_shared<Graph>();
  graph->id = c.op.graph_id;
  if (const uint32_t rc =
          begin_sequence(c.context, c.stream, graph->id, graph, static_cast<CUstreamCaptureMode>(c.op.value));
      rc != CUDA_SUCCESS)
    return rc;
  CUpti_GraphData data{};
  data.graph = reinterpret_cast<CUgraph>(graph.get());
  graph_callback(CUPTI_CBID_RESOURCE_GRAPH_CREATED, c, data);
  return CUDA_SUCCESS;
}

uint32_t end_capture(const Call& c) {
  Captured ended;
  if (const uint32_t rc = end_sequence(c.context, c.stream, ended); rc != CUDA_SUCCESS) return rc;
  Graphs& all = graphs();
  const std::lock_guard lock(all.mutex);
  auto& slot = all.by_id[ended.graph_id];
  if (slot) all.old.push_back(slot);
  slot = std::static_pointer_cast<Graph>(ended.graph);
  return CUDA_SUCCESS;
}

void capture_node(const Call& c, const std::shared_ptr<void>& into) {
  auto& graph = *static_cast<Graph*>(into.get());
  auto node = std::make_unique<Node>(Node{c.op, 0});
  node->op.name = intern(c.op.name);
  node->op.flags &= static_cast<uint16_t>(~(CUPTISIM_API_TIMES | CUPTISIM_GPU_TIMES));
  node->op.stream = c.stream;
  {
    const std::lock_guard lock(graphs().mutex);
    node->id = ++graphs().nodes;
  }
  CUpti_GraphData data{};
  data.graph = reinterpret_cast<CUgraph>(&graph);
  data.nodeType = type_of(c.op);
  graph_callback(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATE_STARTING, c, data);
  data.node = reinterpret_cast<CUgraphNode>(node.get());
  {
    const std::lock_guard lock(graphs().mutex);
    graph.nodes.push_back(std::move(node));
  }
  graph_callback(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, c, data);
}

bool graph_exists(uint32_t id) { return find(id) != nullptr; }

bool graph_instantiated(uint32_t id) {
  const std::lock_guard lock(graphs().mutex);
  const auto at = graphs().by_id.find(id);
  return at != graphs().by_id.end() && at->second->executable;
}

CUgraphExec executable_handle(uint32_t id) {
  const std::lock_guard lock(graphs().mutex);
  const auto at = graphs().by_id.find(id);
  return at == graphs().by_id.end() ? nullptr : reinterpret_cast<CUgraphExec>(at->second->executable.get());
}

uint32_t instantiate_graph(const Call& c) {
  const auto graph = find(c.op.graph_id);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  auto executable = std::make_shared<Executable>();
  executable->id = graph->id;
  CUpti_GraphData data{};
  data.graph = reinterpret_cast<CUgraph>(graph.get());
  data.graphExec = reinterpret_cast<CUgraphExec>(executable.get());
  graph_callback(CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING, c, data);
  for (const auto& original : graph->nodes) {
    auto clone = std::make_unique<Node>(*original);
    {
      const std::lock_guard lock(graphs().mutex);
      clone->id = ++graphs().nodes;
    }
    data.originalGraph = data.graph;
    data.originalNode = reinterpret_cast<CUgraphNode>(original.get());
    data.node = reinterpret_cast<CUgraphNode>(clone.get());
    data.nodeType = type_of(clone->op);
    executable->nodes.push_back(std::move(clone));
    graph_callback(CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED, c, data);
  }
  {
    const std::lock_guard lock(graphs().mutex);
    if (graph->executable) graphs().old.push_back(graph->executable);
    graph->executable = executable;
  }
  data = {};
  data.graph = reinterpret_cast<CUgraph>(graph.get());
  data.graphExec = reinterpret_cast<CUgraphExec>(executable.get());
  graph_callback(CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED, c, data);
  return CUDA_SUCCESS;
}

uint32_t launch_graph(const Call& c) {
  std::shared_ptr<Executable> executable;
  {
    const std::lock_guard lock(graphs().mutex);
    const auto at = graphs().by_id.find(c.op.graph_id);
    if (at == graphs().by_id.end() || !at->second->executable)
      // A recorded call: its nodes come one by one, with their own times.
      return c.op.flags & CUPTISIM_API_TIMES ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    executable = at->second->executable;
  }
  // One record for the whole launch, none for its nodes; or one for each node.
  const bool whole = kind_enabled(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, *c.context);
  const Recording of_nodes = whole ? Recording::kNo : Recording::kYes;
  Placed span{0, 0};
  for (const auto& node : executable->nodes) {
    Placed at{};
    const uint32_t rc = run_work(
        {node->op, *c.context, c.stream, c.correlation, c.begin, node->id, c.op.graph_id, {}}, of_nodes, at);
    if (rc != CUDA_SUCCESS) return rc;
    span.start = span.end == 0 ? at.start : std::min(span.start, at.start);
    span.end = std::max(span.end, at.end);
  }
  if (whole && span.end != 0 && !(c.op.flags & CUPTISIM_NO_RECORD)) emit_graph_record(c, span);
  return CUDA_SUCCESS;
}

void clear_graphs() {
  const std::lock_guard lock(graphs().mutex);
  graphs().by_id.clear();
  graphs().old.clear();
  graphs().nodes = 0;
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
