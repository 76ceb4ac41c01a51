// Scripted faults (cuptisim_inject). Any thread may inject and ask. While there are none, asking costs one
// load.
#pragma once
#include <cupti_result.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/machine/inside.h"

namespace sim {

// Its numbers mean what cuptisim.h says of its kind.
struct Fault {
  int kind;  // cuptisim_fault
  std::string name;
  uint64_t a, b, c;
  mutable std::atomic<uint64_t> seen{0};  // how often it was asked whether it strikes
};

extern std::atomic<bool> g_any_fault;
inline bool any_fault() { return g_any_fault.load(std::memory_order_relaxed); }

void inject(int kind, const char* name, uint64_t a, uint64_t b, uint64_t c);
void clear_faults();

// The first fault of this kind, kept alive for the caller; nullptr: none.
std::shared_ptr<const Fault> fault(int kind);
// The fault of this kind if it strikes now: every a-th time.
std::shared_ptr<const Fault> strikes(int kind);
// The chip shall lack this base metric.
bool missing_metric(const std::string& base);
// Names of all faults of this kind.
std::vector<std::string> names_of(int kind);
// The code a CUPTI function must return now, or CUPTI_SUCCESS.
CUptiResult failure(const char* function);
// The host time of a call passes (fault CALL_TIME), or that of so many ranges in it.
void take_time(const char* function);
void take_time(const char* function, size_t ranges);

}  // namespace sim

// First in every function of CUPTI's that fails as scripted.
#define SIM_FAILURE(function)                                                                        \
  if (::sim::any_fault()) {                                                                          \
    ::sim::take_time(function);                                                                      \
    if (const CUptiResult failed = ::sim::failure(function); failed != CUPTI_SUCCESS) return failed; \
  }                                                                                                  \
  static_assert(true)
// And which is inside the machine until it returns.
#define SIM_FAULTS(function)         \
  const ::sim::Inside inside_call{}; \
  SIM_FAILURE(function)
