// A region handed on: to a thread that was started inside it, to work that was given to a pool, to whoever
// was given a token, and to torch's autograd threads by the thread that called backward.
//
// Nothing is guessed: a thread that was handed nothing has no region but its own. What is handed on is the
// region that was innermost then; once that is left, the nearest one around it that is still open.
#pragma once
#include <cstdint>

#include "threads/thread_slots.h"

namespace cuptiprof {

// The innermost region of one thread and task at one moment.
struct RegionToken {
  uint32_t number = 0;  // of the kHandOver event; 0: no region was open
  int64_t stamp = 0;
  // While regions are watched: the path, for launches that are looked at as they happen.
  uint32_t depth = 0;
  uint32_t names[OpenRegions::kMax];
  uint64_t regions[OpenRegions::kMax];
};

// The calling thread's. Number 0 where nothing is collected, or nothing is open.
RegionToken hand_over(uint64_t task) noexcept;

// From now on work of this thread and task belongs to the token's region, unless it opens one itself. Ends
// with exit_region(what was returned). 0: nothing was adopted.
uint64_t adopt_region(const RegionToken& token, uint64_t task) noexcept;

// The calling thread enters torch's autograd engine or leaves it: while it is inside, the engine's own
// threads work for it. Where the engine is `of_torch`, it tells them for whom (backward_caller.h); where it
// cannot, or is played, they work for the only thread that is inside, and of several nobody can say.
void backward_begins(uint64_t task, bool of_torch) noexcept;
void backward_ends() noexcept;

}  // namespace cuptiprof
