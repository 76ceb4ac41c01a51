#include "sim/calls/graph_nodes.h"

#include <atomic>

#include "sim/activity/callbacks.h"
#include "sim/machine/name_memory.h"

namespace sim {
namespace {

std::atomic<uint64_t> g_nodes{0};

CUgraphNodeType type_of(const Node& node) {
  if (node.child) return CU_GRAPH_NODE_TYPE_GRAPH;
  switch (node.op.kind) {
    case CUPTISIM_OP_KERNEL:
      return CU_GRAPH_NODE_TYPE_KERNEL;
    case CUPTISIM_OP_MEMSET:
      return CU_GRAPH_NODE_TYPE_MEMSET;
    default:
      return CU_GRAPH_NODE_TYPE_MEMCPY;
  }
}

// The name is the library's own copy; times and the way that a call was made are the call's.
cuptisim_op work_of(const Call& c) {
  cuptisim_op op = c.op;
  op.name = intern(c.op.name);
  op.flags &=
      static_cast<uint16_t>(~(CUPTISIM_API_TIMES | CUPTISIM_GPU_TIMES | CUPTISIM_NO_API | CUPTISIM_ADD_NODE));
  op.stream = c.stream;
  return op;
}

std::unique_ptr<Node> new_node(const cuptisim_op& op) {
  return std::make_unique<Node>(Node{op, ++g_nodes, 0, nullptr});
}

}  // namespace

void number_nodes_from_one() { g_nodes = 0; }

void graph_callback(CUpti_CallbackId cbid, const Call& c, CUpti_GraphData data) {
  resource_callback(cbid, reinterpret_cast<CUcontext>(c.context), nullptr, &data);
}

void add_work_node(const Call& c, Graph& into) {
  auto node = new_node(work_of(c));
  CUpti_GraphData data{};
  data.graph = handle(into);
  data.nodeType = type_of(*node);
  graph_callback(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATE_STARTING, c, data);
  data.node = handle(*node);
  into.nodes.push_back(std::move(node));
  graph_callback(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, c, data);
}

void add_child_node(const Call& c, Graph& into, const Graph& child) {
  auto node = new_node({});
  node->child = std::make_shared<Graph>(Graph{into.id, {}});
  CUpti_GraphData data{};
  data.graph = handle(into);
  data.nodeType = CU_GRAPH_NODE_TYPE_GRAPH;
  graph_callback(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATE_STARTING, c, data);
  clone_nodes(c, child, *node->child, nullptr);
  data.node = handle(*node);
  into.nodes.push_back(std::move(node));
  graph_callback(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, c, data);
}

// Each copy is told of twice: it was created, and it is a clone (NVIDIA's sample cuda_graphs_trace leaves out
// "the nodes that are created during graph instantiate" and follows the clones).
void clone_nodes(const Call& c, const Graph& from, Graph& into, CUgraphExec executable) {
  for (const auto& original : from.nodes) {
    auto clone = new_node(original->op);
    clone->source = executable ? original->id : 0;
    if (original->child) {
      clone->child = std::make_shared<Graph>(Graph{into.id, {}});
      clone_nodes(c, *original->child, *clone->child, executable);
    }
    CUpti_GraphData data{};
    data.graph = handle(into);
    data.node = handle(*clone);
    data.nodeType = type_of(*clone);
    data.graphExec = executable;
    into.nodes.push_back(std::move(clone));
    graph_callback(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, c, data);
    data.originalGraph = handle(from);
    data.originalNode = handle(*original);
    graph_callback(CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED, c, data);
  }
}

namespace {

bool same_topology(const Graph& a, const Graph& b) {
  if (a.nodes.size() != b.nodes.size()) return false;
  for (size_t i = 0; i < a.nodes.size(); ++i) {
    if (type_of(*a.nodes[i]) != type_of(*b.nodes[i])) return false;
    if (a.nodes[i]->child && !same_topology(*a.nodes[i]->child, *b.nodes[i]->child)) return false;
  }
  return true;
}

void update_all(const Call& c, const Graph& from, Graph& updated, CUgraphExec executable) {
  for (size_t i = 0; i < updated.nodes.size(); ++i) {
    Node& node = *updated.nodes[i];
    const Node& original = *from.nodes[i];
    if (node.child) {
      update_all(c, *original.child, *node.child, executable);
      continue;
    }
    node.op = original.op;
    node.source = original.id;
    CUpti_GraphData data{};
    data.graph = handle(updated);
    data.originalGraph = handle(from);
    data.node = handle(node);
    data.originalNode = handle(original);
    data.nodeType = type_of(node);
    data.graphExec = executable;
    graph_callback(CUPTI_CBID_RESOURCE_GRAPH_NODE_UPDATED, c, data);
  }
}

}  // namespace

bool update_nodes(const Call& c, const Graph& from, Graph& updated, CUgraphExec executable) {
  if (!same_topology(from, updated)) return false;
  update_all(c, from, updated, executable);
  return true;
}

void set_node(const Call& c, Node& node, const Node& original, CUgraphExec executable) {
  const uint16_t kind = node.op.kind;
  node.op = work_of(c);
  node.op.kind = kind;
  node.source = original.id;
  CUpti_GraphData data{};
  data.node = handle(node);
  data.originalNode = handle(original);
  data.nodeType = type_of(node);
  data.graphExec = executable;
  graph_callback(CUPTI_CBID_RESOURCE_GRAPH_NODE_SET_PARAMS, c, data);
}

void tell_node_ends(const Call& c, const Graph& of, const Node& node) {
  if (node.child)
    for (const auto& inner : node.child->nodes) tell_node_ends(c, *node.child, *inner);
  CUpti_GraphData data{};
  data.graph = handle(of);
  data.node = handle(node);
  data.nodeType = type_of(node);
  graph_callback(CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING, c, data);
}

}  // namespace sim
