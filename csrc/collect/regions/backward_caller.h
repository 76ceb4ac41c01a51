// For which thread one of torch's autograd threads works: several may be inside backward at once, and one
// engine thread evaluates nodes for all of them, now for this one, now for that.
//
// torch has a place for it: c10's thread-local debug information, which the engine carries from the thread
// that calls to each that works for it, node by node. The caller's slot is put there under a kind of our own.
// No torch is linked: its functions are looked up in the library that the program has loaded.
#pragma once
#include <cstdint>

#include "threads/thread_slots.h"

namespace cuptiprof {

// The calling thread enters torch's engine, and leaves it again: one pair, not one inside another. False:
// this torch has no such place, or no memory; nothing is to be taken back then.
bool mark_backward_caller(ThreadSlot& slot) noexcept;
void unmark_backward_caller() noexcept;

// The slot of the thread for which the calling one works now; null: torch does not say.
const ThreadSlot* marked_backward_caller() noexcept;

// note_backward_caller of regions.h: says for whom a worker works, if that changed.

// What was noted before is not known to the session that begins.
void forget_backward_callers() noexcept;

}  // namespace cuptiprof
