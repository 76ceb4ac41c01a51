// How often each device's primary context is retained.
#pragma once

namespace sim {

void forget_primary_contexts();

}  // namespace sim
