// Which module an operator of PyTorch works for: the one whose call runs, and in backward that of the
// operator which made the node.
#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>

#include "collect/torch/record_function.h"
#include "threads/thread_slots.h"

namespace cuptiprof::torch {

struct OperatorModule {
  NodeModule node;    // of a node of backward
  NodeModule within;  // the same, or of the one that it is part of
  NodesMade makes;
};

// What the engine does around a node of backward: it does not say which node that is, which begins inside.
inline constexpr std::string_view kAroundNode = "autograd::engine::evaluate_function: ";

// Of the operator that begins now on the calling thread. `thread`: torch's number of it; `sequence`: -1:
// none; `next_node`: what the thread's next node is numbered.
inline OperatorModule module_of_operator(ThreadSlot& slot, const char* name, uint8_t scope, uint64_t thread,
                                         uint64_t forward_thread, int64_t sequence,
                                         uint64_t (*next_node)()) noexcept {
  const FrameSource source = g_module_source.load(std::memory_order_relaxed);
  if (!source) return {};
  const uint32_t here = source();
  OperatorModule out{{}, slot.operators.node_module()};
  if (scope == kBackwardScope) {
    // One without a number was made by no operator: it adds up the gradient of a parameter.
    const uint32_t module =
        sequence < 0 ? kNoModule : g_forward_modules.find(forward_thread, static_cast<uint64_t>(sequence));
    out.node = out.within = {module, here};
    slot.operators.node_comes(module);
  } else if (std::strncmp(name, kAroundNode.data(), kAroundNode.size()) == 0) {
    out.node = {kNodeToCome, here};
  } else if (scope == kFunctionScope || scope == kScriptScope || sequence >= 0) {
    const bool is_of_node = out.within.module != 0 && out.within.around == here;
    const uint32_t module = is_of_node ? out.within.module : here;
    out.makes = {next_node(), module != 0 ? module : kNoModule};
    // TorchScript makes its node before anything that has a sequence number begins.
    if (sequence >= 0 || scope == kScriptScope)
      g_forward_modules.put(thread, sequence >= 0 ? static_cast<uint64_t>(sequence) : out.makes.first,
                            out.makes.module);
  }
  return out;
}

// The operator ends: not all nodes that it made are known by its own number. (One that writes into a view
// makes one more, and what TorchScript differentiates as a whole begins before its first operator.)
inline void operator_made(const NodesMade& made, uint64_t thread, uint64_t next_node) noexcept {
  for (uint64_t node = made.first; node < next_node; ++node)
    if (!g_forward_modules.knows(thread, node)) g_forward_modules.put(thread, node, made.module);
}

}  // namespace cuptiprof::torch
