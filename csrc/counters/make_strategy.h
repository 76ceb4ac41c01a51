// The strategy that a session asked for, once nothing stands in its way (preflight).
#pragma once
#include <memory>

#include "counters/strategy/counter_strategy.h"

namespace cuptiprof {

// Throws Error; nothing is switched on yet.
std::unique_ptr<CounterStrategy> make_strategy(std::shared_ptr<const Api> api, CounterOptions options);

}  // namespace cuptiprof
