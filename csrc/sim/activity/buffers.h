// Activity buffers: one per thread, completed on a thread of the library's own or by a flush. As NVIDIA's
// does, it asks the client for a buffer on the thread that has a record, while that thread's buffer is
// locked.
#pragma once
#include <cupti_activity.h>

#include <cstddef>
#include <cstdint>

#include "sim/activity/delivery.h"

namespace sim {

// Puts a record into the calling thread's buffer, of each client that wants it. It is complete at
// `complete_at` (0: already); the buffer does not go to the client before, unless a flush is forced.
void emit(const void* record, size_t bytes, uint64_t complete_at);

// Hands every buffer back without records.
void discard_buffers();
// As if the client had not registered any, and without those it has.
void forget_buffers(uint32_t client);
void set_per_thread_buffers(uint32_t client, bool on);
// The profiler clears its buffers; else they are cleared here when they are asked for, on the launching
// thread.
void set_cleared_by_client(uint32_t client, bool on);
// cuptiActivityGetNextRecord, whoever calls it.
CUptiResult next_record(uint8_t* buffer, size_t valid, CUpti_Activity** record);
// Records dropped since the last call.
uint64_t take_dropped(uint32_t client);
void set_request_callback(uint32_t client, SharedRequest request);

}  // namespace sim
