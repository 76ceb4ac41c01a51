// The calling thread's contexts: the driver's stack, and the one that the runtime's calls made current. They
// are handles: what they stand for may be gone (Machine::find_context).
#pragma once
#include <cuda.h>

namespace sim {

// The context a driver call without one acts on; null: none.
CUcontext current_context();
// A runtime call does so before anything else.
void set_runtime_context(CUcontext context);
// No context is current any more: the machine that they were of was reset.
void leave_contexts();

void push_context(CUcontext context);
// Null: the stack is empty.
CUcontext pop_context();
// In place of the top one; null takes it away.
void replace_context(CUcontext context);

}  // namespace sim
