// Which records are wanted.
#pragma once
#include <cupti_activity.h>
#include <cupti_callbacks.h>

#include <cstdint>

namespace sim {

struct Context;

bool kind_enabled(CUpti_ActivityKind kind);
// For everybody, or for this context alone.
bool kind_enabled(CUpti_ActivityKind kind, const Context& context);
bool api_record_wanted(bool driver, CUpti_CallbackId cbid);
bool latency_timestamps();
bool device_event_timestamps();
bool system_thread_ids();

// Any kind or API call is enabled.
bool activity_in_use();
void disable_activity();
// Attributes and switches as in a fresh process.
void reset_activity_settings();

// The calling thread's external IDs, for an API record that follows.
void emit_external_correlation(uint32_t correlation);

}  // namespace sim
