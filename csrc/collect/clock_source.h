// One clock for regions, launches and activity records.
#pragma once
#include <memory>

namespace cuptiprof {

struct Api;

// Makes CUPTI stamp its records with our clock, before any kind is enabled. Other clients give it theirs
// (Kineto the raw TSC at each of its starts, never taking it back), and cuptiFinalize takes all away;
// registering again spoils a record or two. So CUPTI is asked what time it is, and told ours only where the
// answer is not between two readings of it. A library that takes no clock keeps its own, and regions are
// stamped with that.
void use_run_clock(const std::shared_ptr<const Api>& api);

}  // namespace cuptiprof
