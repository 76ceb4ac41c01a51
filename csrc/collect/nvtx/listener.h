// NVTX as a source of scopes: what libcuptiprof_nvtx.so hears becomes labels, events in the rings and live
// scopes.
#pragma once
#include "threads/scope_label.h"

namespace cuptiprof {

// From the start of a session to its end. Does nothing where the library was not opened (nvtx_library.h).
void listen_to_nvtx(ScopeLevel level) noexcept;
// In a forked child: takes no lock, for somebody may have held it.
void leave_nvtx_to_parent() noexcept;

// While it lives, ranges of the calling thread are not ours to hear: a region that tells NVTX of itself.
class OwnNvtxCall {
 public:
  OwnNvtxCall() noexcept;
  ~OwnNvtxCall();
  OwnNvtxCall(const OwnNvtxCall&) = delete;
  OwnNvtxCall& operator=(const OwnNvtxCall&) = delete;
};

}  // namespace cuptiprof
