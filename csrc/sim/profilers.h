// The profiler objects of the process.
#pragma once
#include "pm_sampler.h"
#include "range_session.h"
#include "registry.h"

namespace sim {

Registry<const Context*, RangeSession>& range_sessions();
Registry<uint32_t, Sampler>& samplers();  // by device

// The chip of a device, as the profiler sees it.
const Chip& chip_of_device(uint32_t device);

// cuptiProfilerInitialize was called.
bool profiler_initialized();
void set_profiler_initialized(bool yes);

}  // namespace sim
