// Labels of operators by name, without a lock and without allocating where a name was seen before.
#pragma once
#include <cstdint>

namespace cuptiprof::torch {

// The label of an operator of this name and scope (at::RecordScope), in the running session. Names are
// compared by their text: torch makes some anew for each call. At first sight a name is interned, which locks
// and allocates; one that finds no room is "(other)", which is counted.
uint32_t operator_label(const char* name, uint8_t scope) noexcept;

}  // namespace cuptiprof::torch
