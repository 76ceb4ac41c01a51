// Activity records of calls and of GPU work. Each is written on the thread that made the call, and only if
// somebody wants it (emit_api_record and emit_graph_record: the caller has asked).
#pragma once
#include <cupti_activity.h>
#include <cupti_callbacks.h>

#include <cstdint>

#include "sim/machine/work.h"

namespace sim {

void emit_work_record(const Work& work);
void emit_graph_record(const Call& call, Placed at);
void emit_api_record(const Call& call, Api api, CUpti_CallbackId cbid, uint64_t end);
void emit_sync_record(const Call& call, CUpti_ActivitySynchronizationType type, uint64_t end);
void emit_event_record(const Call& call, uint64_t sync_id, uint64_t device_time);
void emit_memory_record(const Call& call);
void emit_memory_pool_record(const Call& call);
// The call waited for room in its stream from `start` until now.
void emit_full_queue_record(const Call& call, uint64_t start);
void emit_stream_record(const Call& call);
void emit_context_record(const Context& context);

// cuInit, or the first use of a device: device records are written now, for those who are there to see it.
void initialise_cuda();
// cuptiActivityEnableAndDump: records of what there is, whenever it was made.
void dump_existing(CUpti_ActivityKind kind);

}  // namespace sim
