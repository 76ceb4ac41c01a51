// What a scope is called: a region of ours, or a named range of another origin that is open when work is
// launched.
#pragma once
#include <cstdint>
#include <string>

namespace cuptiprof {

enum class ScopeSource : uint8_t {
#define CP_SCOPE_SOURCE(enumerator, code, text) enumerator = code,
#include "base/codes.def"
};

enum class ScopeLevel : uint8_t {
  kOff,
  kLaunch,  // known at launches
  kFull,    // with host times, in the tree of regions
};

struct ScopeLabel {
  ScopeSource source = ScopeSource::kRegion;
  std::string domain;  // of NVTX; empty: the default one
  std::string name;
};

}  // namespace cuptiprof
