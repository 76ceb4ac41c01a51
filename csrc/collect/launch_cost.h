// What a launch costs the thread that makes it, as far as that can be tried out without a launch.
#pragma once

namespace cuptiprof {

// CPU ns of the event that a launch's callback writes, the least of several tries: our part of the launch.
// What CUPTI does around it, and its record, come on top.
double launch_event_ns();

}  // namespace cuptiprof
