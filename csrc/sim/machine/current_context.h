// The calling thread's contexts: the driver's stack, and the one that the runtime's calls made current.
#pragma once
#include <cuda.h>

namespace sim {

// The context a driver call without one acts on; null: none.
CUcontext current_context();
void set_runtime_context(CUcontext context);
// No context is current any more.
void leave_contexts();

void push_context(CUcontext context);
// Null: the stack is empty.
CUcontext pop_context();
// In place of the top one; null takes it away.
void replace_context(CUcontext context);

}  // namespace sim
