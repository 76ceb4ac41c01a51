// Activity buffers: one per thread, completed on a thread of the library's own or by a flush.
#pragma once
#include <cupti_activity.h>

#include <cstddef>
#include <cstdint>

namespace sim {

// Puts a record into the calling thread's buffer. It is complete at `complete_at` (0: already).
void emit(const void* record, size_t bytes, uint64_t complete_at);

uint32_t buffers_outstanding();
// Hands every buffer back without records.
void discard_buffers();
// As if cuptiActivityRegisterCallbacks had not been called.
void forget_buffer_callbacks();
void set_per_thread_buffers(bool on);
// The profiler clears its buffers; else they are cleared here when they are asked for, on the launching
// thread.
void set_cleared_by_client(bool on);

}  // namespace sim
