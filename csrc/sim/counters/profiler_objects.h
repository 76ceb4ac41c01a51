// The profiler objects of the process: those that the profiler enabled and has not disabled yet.
#pragma once
#include "sim/counters/device_sampler.h"
#include "sim/counters/object_registry.h"
#include "sim/counters/range_session.h"

namespace sim {

Registry<const Context*, RangeSession>& range_sessions();
Registry<uint32_t, Sampler>& samplers();  // by device

// The chip of a device, as the profiler sees it (a fault can make it another one than the machine's).
const Chip& chip_of_device(uint32_t device);

// cuptiProfilerInitialize was called.
bool profiler_initialized();
void set_profiler_initialized(bool yes);

}  // namespace sim
