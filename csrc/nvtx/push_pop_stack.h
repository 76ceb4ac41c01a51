// The push/pop ranges that are open on the calling thread, of all domains, kept whether or not somebody
// listens: NVTX wants the level of each, and what was pushed while nobody listened must be popped as such.
#pragma once
#include <cstdint>

namespace cuptiprof::nvtx {

struct OpenRange {
  uint64_t id;    // the listener's; 0: it knows nothing of this one
  uint64_t task;  // the listener's task
  uint32_t domain;
  uint32_t level;  // ranges of its domain around it, on its thread
};

// Its level, or kNoTracking: too many are open, or no memory.
int push_open(uint64_t id, uint64_t task, uint32_t domain) noexcept;

// Takes out the innermost range of this domain, of this task rather than of others that share the thread.
// False: none is open.
bool pop_open(uint64_t task, uint32_t domain, OpenRange* taken) noexcept;

}  // namespace cuptiprof::nvtx
