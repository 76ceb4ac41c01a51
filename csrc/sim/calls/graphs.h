// CUDA graphs: capture, making and changing them by hand, instantiation, launch. On whatever thread the
// program calls; the callbacks that belong to it are made here, no lock held.
//
// Graphs and executable graphs have numbers that the script gives, each their own; a launch names an
// executable one.
#pragma once
#include <cupti_callbacks.h>

#include <cstdint>
#include <memory>

#include "sim/activity/records.h"

namespace sim {

// Each returns a CUresult.
uint32_t begin_capture(const Call& call);
uint32_t end_capture(const Call& call);
uint32_t create_graph(const Call& call);
uint32_t add_node(const Call& call);
uint32_t add_child_graph(const Call& call);
uint32_t clone_graph(const Call& call);
uint32_t destroy_node(const Call& call);
uint32_t destroy_graph(const Call& call);
uint32_t instantiate_graph(const Call& call);
uint32_t update_executable(const Call& call);
uint32_t set_executable_node(const Call& call);
uint32_t destroy_executable(const Call& call);
uint32_t launch_graph(const Call& call);

// The call becomes a node of this graph (Captured::graph).
void capture_node(const Call& call, const std::shared_ptr<void>& into);

// A graph of this number is there, and no executable one: a launch instantiates it first.
bool needs_instantiation(uint32_t number);
// Null: not instantiated.
CUgraphExec executable_handle(uint32_t number);
void clear_graphs();

}  // namespace sim
