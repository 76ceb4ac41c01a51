// What the machine is given to do: a call, and the piece of GPU work that it asks for.
#pragma once
#include <cstdint>

#include "sim/machine/machine.h"

namespace sim {

// Which of CUDA's two interfaces a call is of. A runtime call ends in a driver call, under the same
// correlation ID.
enum class Api : uint8_t { kRuntime, kDriver };

// When a piece of work runs, ns of the machine's time.
struct Placed {
  uint64_t start, end;
};

constexpr uint64_t kUsualDuration = 1000;  // ns, of work that was given none

// A piece of GPU work: what asked for it, and where and when it runs.
struct Work {
  const cuptisim_op& op;
  const Context& context;
  uint32_t stream;
  uint32_t correlation;
  uint64_t call_time;
  uint64_t node;   // graph node ID, 0: none
  uint32_t graph;  // graph ID, 0: none
  Placed at;
  uint64_t source = 0;  // graph node that `node` was instantiated or last updated from; 0: none
};

// A call on its way.
struct Call {
  const cuptisim_op& op;
  Context* context;
  uint32_t stream;
  uint32_t correlation;
  uint64_t begin = 0;
  uint32_t result = 0;  // CUresult
};

}  // namespace sim
