// Primary contexts of the driver: retained and released by their counts.
#pragma once

namespace sim {

// The counts are forgotten: the machine is reset, its contexts with it.
void forget_primary_contexts();

}  // namespace sim
