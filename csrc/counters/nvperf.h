// libnvperf, the library behind CUPTI's metrics: 100 MB of it, so it is loaded only when metrics are asked
// for.
#pragma once
#include "cupti/api.h"

namespace cuptiprof {

// Loads libnvperf_host.so and libnvperf_target.so from beside the libcupti in use. libcupti opens them by
// bare name later: without this it does not find those of a wheel, or takes another CUDA's. Once per libcupti
// is enough, further calls are cheap. Returns the handle of libnvperf_host.so; nullptr for the stand-in,
// which needs none. Throws Error (kDevice).
void* preload_nvperf(const Api& api);

}  // namespace cuptiprof
