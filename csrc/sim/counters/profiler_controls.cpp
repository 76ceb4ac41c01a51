#include "sim/counters/profiler_controls.h"

#include <cuda.h>
#include <cupti_result.h>

#include <atomic>
#include <cstdio>

#include "sim/cuptisim.h"
#include "sim/machine/faults.h"
#include "sim/machine/machine.h"

namespace sim {
namespace {

std::atomic<uint32_t> g_cache{0}, g_locked{0}, g_locks{0}, g_unlocks{0};  // g_locked: CUpti_ClockControl_Mode

constexpr int kFirstClockMode = 1, kLastClockMode = 2;  // CUpti_ClockControl_Mode
// CUpti_ClockControl_Status; the lock may be somebody else's.
constexpr int kUnlocked = 1, kLocked = 2;

bool others_hold_clocks() { return fault(CUPTISIM_FAULT_CLOCKS_LOCKED) != nullptr; }
bool has_controls() { return Machine::get().version() >= kFirstWithControls; }

}  // namespace

void note_cache_control(uint32_t mode) { g_cache = mode; }
void drop_controls() { g_cache = g_locked = g_locks = g_unlocks = 0; }

}  // namespace sim

using namespace sim;

// One lock a process: a second one changes nothing, and neither does one over somebody else's.
SIM_EXPORT CUptiResult CUPTIAPI cuptiClockControlLock(CUcontext context, int mode) {
  SIM_FAULTS("cuptiClockControlLock");
  if (!has_controls()) return CUPTI_ERROR_API_NOT_IMPLEMENTED;
  if (!Machine::get().find_context(context) || mode < kFirstClockMode || mode > kLastClockMode)
    return CUPTI_ERROR_INVALID_PARAMETER;
  if (others_hold_clocks() || g_locked) return CUPTI_SUCCESS;
  g_locked = static_cast<uint32_t>(mode);
  ++g_locks;
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiClockControlUnlock() {
  SIM_FAULTS("cuptiClockControlUnlock");
  if (!has_controls()) return CUPTI_ERROR_API_NOT_IMPLEMENTED;
  if (g_locked.exchange(0)) ++g_unlocks;
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiClockControlGetStatus(CUcontext context, int* status) {
  SIM_FAULTS("cuptiClockControlGetStatus");
  if (!has_controls()) return CUPTI_ERROR_API_NOT_IMPLEMENTED;
  if (!Machine::get().find_context(context) || !status) return CUPTI_ERROR_INVALID_PARAMETER;
  *status = g_locked || others_hold_clocks() ? kLocked : kUnlocked;
  return CUPTI_SUCCESS;
}

SIM_EXPORT void cuptisim_get_controls(cuptisim_controls* out) {
  *out = {g_cache, g_locked, g_locks, g_unlocks};
}

SIM_EXPORT void cuptisim_say_controls() {
  std::printf("locked %u, %u locks, %u unlocks\n", g_locked.load(), g_locks.load(), g_unlocks.load());
  std::fflush(stdout);
}
