// libnvperf, the library behind CUPTI's metrics: 100 MB of it, so it is loaded only when metrics are asked
// for.
#pragma once
#include "cupti/api.h"

namespace cuptiprof {

// libcupti opens libnvperf_host.so (planning, values) and libnvperf_target.so (collecting) by bare name: it
// does not find those of a wheel, or takes another CUDA's. These load them from beside the libcupti in use,
// before it looks. Each does its work once per libcupti, from any thread; nothing happens for the stand-in.
// Not to be called in a callback: it loads libraries. Throw Error (kDevice).

// Before the first call of the host API; MetricHost does it. Returns the library's handle; nullptr for the
// stand-in, which needs none.
void* preload_nvperf_host(const Api& api);

// Before the first call of the range profiler or of PM sampling, as a plan out of a cache has loaded nothing:
// both libraries. Planning alone does without the second, which takes 60 ms to load.
void preload_nvperf(const Api& api);

}  // namespace cuptiprof
