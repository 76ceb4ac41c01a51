// What every way of counting asks of CUPTI's profiler first. Control path.
#pragma once
#include <cstddef>
#include <string>

#include "cupti/api.h"

namespace cuptiprof {

// cuptiProfilerInitialize, for each session: it is not reference-counted, and another client may have undone
// it since. We never undo it, for the same reason. Throws Error.
void initialize_profiler(const Api& api);

// CUPTI's name of the chip of a device, "GH100". Throws Error.
std::string chip_name(const Api& api, size_t device);

}  // namespace cuptiprof
