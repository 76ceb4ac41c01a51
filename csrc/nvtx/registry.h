// What NVTX is told once and refers to ever after: domains, registered strings, names. Lives as long as the
// process and is bounded: what finds no room is counted, and stands for "(other)".
//
// Handles are addresses in arrays that are never moved, so that one that is not ours is known for it. The
// same text gives the same handle; a domain that is destroyed keeps its handle, for others may have it too.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "nvtx/link.h"

namespace cuptiprof::nvtx {

inline constexpr uint32_t kMaxDomains = 1024;
inline constexpr uint32_t kMaxStrings = 1u << 16;
inline constexpr size_t kMaxTextBytes = 16u << 20;  // of all texts together

struct Domain {
  const char* name;
};

// Of one domain.
struct String {
  const char* text;
  uint32_t bytes;
  uint32_t domain;
  uint64_t label;  // Said::label
};

// Any thread; those that return a handle lock and may allocate.
const Domain* make_domain(std::string_view name) noexcept;
const String* make_string(const Domain* domain, std::string_view text) noexcept;
void name_category(const Domain* domain, uint32_t category, std::string_view name) noexcept;
size_t category_name(uint32_t domain, uint32_t category, char* out, size_t room) noexcept;
void name_object(Named what, uint64_t object, std::string_view name) noexcept;
void visit_names(void (*visit)(void* user, Named what, uint64_t object, const char* name),
                 void* user) noexcept;
uint64_t texts_lost() noexcept;

// Without a lock. A handle that is not ours is the default domain, or null.
uint32_t domain_number(const Domain* domain) noexcept;
const char* domain_name(uint32_t number) noexcept;
String* known_string(const String* string) noexcept;

}  // namespace cuptiprof::nvtx
