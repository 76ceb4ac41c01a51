// Which records are wanted, by whom (`client`: an index into clients.h). Set by control calls, asked without
// a lock by every thread that has something to record.
#pragma once
#include <cupti_activity.h>
#include <cupti_callbacks.h>

#include <cstdint>

#include "sim/machine/work.h"

namespace sim {

// Somebody wants it.
bool kind_enabled(CUpti_ActivityKind kind);
bool kind_enabled(CUpti_ActivityKind kind, uint32_t client);
bool wants(uint32_t client, const CUpti_Activity* record);
// For everybody, or for this context alone.
bool kind_enabled(CUpti_ActivityKind kind, const Context& context);
bool api_record_wanted(Api api, CUpti_CallbackId cbid);
bool latency_timestamps();
bool latency_timestamps(uint32_t client);
void set_latency_timestamps(uint32_t client, bool on);
bool device_event_timestamps();
bool system_thread_ids(uint32_t client);
// The calling thread's ID as client 0 wants it.
uint32_t this_thread_id();
void set_system_thread_ids(uint32_t client, bool on);

// Any kind or API call is enabled.
bool activity_in_use();
void disable_activity(uint32_t client);
// Attributes and switches as in a fresh process.
void reset_activity_settings(uint32_t client);

// What CUPTI's calls do for one client.
CUptiResult enable_kind(uint32_t client, CUpti_ActivityKind kind);
CUptiResult enable_and_dump(uint32_t client, CUpti_ActivityKind kind);
CUptiResult disable_kind(uint32_t client, CUpti_ActivityKind kind);
CUptiResult enable_api(uint32_t client, Api api, CUpti_CallbackId cbid, bool on);
CUptiResult set_attribute(uint32_t client, CUpti_ActivityAttribute attribute, size_t* size,
                          const void* value);
CUptiResult get_attribute(uint32_t client, CUpti_ActivityAttribute attribute, size_t* size, void* value);

// The calling thread's external IDs, for an API record that follows.
void emit_external_correlation(uint32_t correlation);

}  // namespace sim
