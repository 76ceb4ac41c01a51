// Operators of PyTorch as they begin and end, on every thread, in the running session.
#pragma once
#include "collect/torch/input_shapes.h"
#include "collect/torch/record_function.h"
#include "threads/scope_label.h"

namespace cuptiprof::torch {

// What a session wants to know of operators.
struct Wanted {
  ScopeLevel level = ScopeLevel::kOff;
  bool shapes = false;  // of their inputs, and types (level "full")
};

// From here on, until it is called with nothing. Where torch is not known yet, from know_torch() on.
void observe_operators(Wanted wanted) noexcept;

// The program's torch, after a trial showed where the fields of its operators are. For the life of the
// process.
void know_torch(const Library& library, const Layout& layout, const InputLayout& inputs) noexcept;
bool knows_torch() noexcept;

}  // namespace cuptiprof::torch
