// Switching an activity kind on as a session wants it.
#pragma once
#include <cupti_activity.h>

namespace cuptiprof {

class SubscriberCalls;

// Devices, contexts and streams with those that are there already; API calls without the ones that only ask
// and come by the thousand (those that Kineto leaves out, and queries of events), unless `all_calls`.
CUptiResult enable_kind(const SubscriberCalls& calls, CUpti_ActivityKind kind, bool all_calls);

}  // namespace cuptiprof
