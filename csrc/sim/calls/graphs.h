// CUDA graphs: capture, instantiation, launch.
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
CUgraphExec executable_handle(uint32_t id);
bool graph_exists(uint32_t id);
void clear_graphs();

// Runs a piece of work: places it, counts it, writes its record if `record`. Returns a CUresult.
uint32_t run_work(Work work, bool record, Placed& at);

}  // namespace sim
