// CUDA graphs: capture, instantiation, launch. On whatever thread the program calls; the callbacks that
// belong to it are made here, no lock held.
#pragma once
#include <cstdint>
#include <memory>

#include "sim/activity/records.h"

namespace sim {

// Each returns a CUresult.
uint32_t begin_capture(const Call& call);
uint32_t end_capture(const Call& call);
uint32_t instantiate_graph(const Call& call);
uint32_t launch_graph(const Call& call);

// The call becomes a node of this graph (Captured::graph).
void capture_node(const Call& call, const std::shared_ptr<void>& into);

bool graph_instantiated(uint32_t id);
// Null: not instantiated.
CUgraphExec executable_handle(uint32_t id);
bool graph_exists(uint32_t id);
void clear_graphs();

}  // namespace sim
