// Labels of scopes by number: what events in rings, the stacks of open scopes and the launch gate carry.
//
// They age by generations: those who remember a label's ID look it up again when a new one begins, and the
// label is then given another ID. So an old ID is carried only by what was open, or on its way, before.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "threads/scope_label.h"

namespace cuptiprof {

inline constexpr std::string_view kOtherScopes = "(other)";
inline constexpr std::string_view kLostName = "(name lost)";
inline std::atomic<uint64_t> g_labels_lost{0};  // labels for which the session had no room
// IDs below are of older generations: not to be used anew.
inline std::atomic<uint32_t> g_first_label{1};

// Label -> ID; the same label gives the same ID as long as the generation lasts: until the end of a session,
// or until they age. IDs are not used again. Thread-safe; locks and allocates. Labels for which the session
// has no room share the ID of "(other)" of their source, which is counted.
uint32_t scope_label_id(ScopeSource source, std::string_view domain, std::string_view name);
inline uint32_t region_label_id(std::string_view name) {
  return scope_label_id(ScopeSource::kRegion, {}, name);
}
// kLostName, which is counted, where the ID was forgotten.
ScopeLabel scope_label(uint32_t id);
std::vector<ScopeLabel> scope_labels(const std::vector<uint32_t>& ids);

// Whether so much of the room is used up that older labels should go.
bool wants_to_age_labels();
// Whether those of `used` that are of older generations leave most of the room.
bool is_room_for_labels(const std::vector<uint32_t>& used);
// A new generation begins. Labels of those before the last one go, except `used` ones.
void age_labels(const std::vector<uint32_t>& used);

void set_label_budget(size_t bytes);
void forget_labels();

}  // namespace cuptiprof
