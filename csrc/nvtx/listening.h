// Who listens to NVTX now.
#pragma once
#include <atomic>
#include <cstdint>

#include "nvtx/link.h"

namespace cuptiprof::nvtx {

inline std::atomic<const Listener*> g_listener{nullptr};
inline const Listener* listener() noexcept { return g_listener.load(std::memory_order_acquire); }

}  // namespace cuptiprof::nvtx
