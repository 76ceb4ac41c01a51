// Nodes of CUDA graphs: what they are, how they are made and copied, and what CUPTI is told of it.
//
// A graph is a template, or what is inside a node of it (a child graph), or what an executable graph has of
// its own. As in CUDA no two threads change one graph at once; the numbers of nodes are everybody's.
#pragma once
#include <cupti_callbacks.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/machine/work.h"

namespace sim {

struct Graph;

struct Node {
  cuptisim_op op;
  uint64_t id;
  uint64_t source;  // ID of the node that this one was instantiated or last updated from; 0: its own
  std::shared_ptr<Graph> child;  // of a child graph node; null: work
};

struct Graph {
  uint32_t id;  // what records and cuptiGetGraphId say
  std::vector<std::unique_ptr<Node>> nodes;
};

// Adds a node that does this op's work.
void add_work_node(const Call& call, Graph& into);
// Adds a node that stands for a copy of `child`.
void add_child_node(const Call& call, Graph& into, const Graph& child);
// Copies all nodes of `from`, and all inside of them, into `into`, which has none.
void clone_nodes(const Call& call, const Graph& from, Graph& into, CUgraphExec executable);
// What the nodes of `graph` do is done by those of `updated` from now on. False: they are not the same nodes.
bool update_nodes(const Call& call, const Graph& from, Graph& updated, CUgraphExec executable);
// A node of an executable graph gets the op's arguments.
void set_node(const Call& call, Node& node, const Node& original, CUgraphExec executable);
// Tells of the end of a node, and of all inside of it.
void tell_node_ends(const Call& call, const Graph& of, const Node& node);

// Each piece of work in the order of launching, those of child graphs in their parent's place.
template <typename Visit>
void for_each_work(const Graph& graph, const Visit& visit) {
  for (const auto& node : graph.nodes)
    if (node->child)
      for_each_work(*node->child, visit);
    else
      visit(*node);
}

void graph_callback(CUpti_CallbackId cbid, const Call& call, CUpti_GraphData data);
inline CUgraph handle(const Graph& g) { return reinterpret_cast<CUgraph>(const_cast<Graph*>(&g)); }
inline CUgraphNode handle(const Node& n) { return reinterpret_cast<CUgraphNode>(const_cast<Node*>(&n)); }
void number_nodes_from_one();

}  // namespace sim
