// Labels of scopes by number: what events in rings, the stacks of open scopes and the launch gate carry.
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
inline std::atomic<uint64_t> g_labels_lost{0};  // labels for which the session had no room
// IDs below are forgotten ones.
inline std::atomic<uint32_t> g_first_label{1};

// Label -> ID; the same label gives the same ID until they are forgotten, at the end of a session. IDs are
// not used again. Thread-safe; locks and allocates. Labels for which the session has no room share the ID of
// "(other)" of their source, which is counted.
uint32_t scope_label_id(ScopeSource source, std::string_view domain, std::string_view name);
inline uint32_t region_label_id(std::string_view name) {
  return scope_label_id(ScopeSource::kRegion, {}, name);
}
// "(unknown)" where the ID was forgotten.
ScopeLabel scope_label(uint32_t id);
std::vector<ScopeLabel> scope_labels(const std::vector<uint32_t>& ids);

void set_label_budget(size_t bytes);
void forget_labels();

}  // namespace cuptiprof
