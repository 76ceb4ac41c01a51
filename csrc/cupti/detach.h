// Taking CUPTI itself out of the process (cuptiFinalize), so that later launches pass nothing of it.
#pragma once
#include <cstdint>

#include "cupti/api.h"

namespace cuptiprof {

// The caller made sure that nothing of ours is switched on and that the GPU has finished. Throws Error with
// CUPTI still there: another tool holds it (which would lose everything without being told), or it refused.
void finalize_cupti(const Api& api);

// It was finalized by somebody else, or by itself.
void note_finalized(const Api& api) noexcept;

// How often this library was finalized: what was set up in it once per process must be set up once more after
// each.
uint32_t times_finalized(const Api& api);

}  // namespace cuptiprof
