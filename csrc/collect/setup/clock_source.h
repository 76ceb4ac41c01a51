// One clock for regions, launches and activity records.
#pragma once
#include <memory>

namespace cuptiprof {

struct Api;
class SubscriberCalls;

// Makes CUPTI stamp its records with our clock, before any kind is enabled. Other clients give it theirs
// (Kineto the raw TSC at each of its starts, never taking it back), and cuptiFinalize takes all away;
// registering again spoils a record or two. So CUPTI is asked what time it is, and told ours only where the
// answer is not between two readings of it; one of several subscribers has a clock of its own. A library that
// takes no clock keeps its own, and regions are stamped with that.
void use_run_clock(const std::shared_ptr<const Api>& api, const SubscriberCalls& calls);
// The subscriber whose clock that may be goes.
void leave_clock(const SubscriberCalls& calls) noexcept;

}  // namespace cuptiprof
