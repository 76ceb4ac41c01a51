#include "counters/strategy/clock_lock.h"

#include <unistd.h>

#include <cstdlib>

namespace cuptiprof {
namespace {

std::atomic<pid_t> g_holder{0};  // the process that locked: a forked child has no lock to give back
std::atomic<const Api*> g_api{nullptr};

void unlock() noexcept {
  pid_t me = getpid();
  const Api* api = g_api.load();
  if (api && g_holder.compare_exchange_strong(me, 0)) api->cuptiClockControlUnlock();
}

}  // namespace

void ClockLock::hold(CUcontext context) noexcept {
  if (x_mode == 0 || !context || x_state.load() != State::kOpen) return;
  CUptiResult rc = CUPTI_ERROR_NOT_SUPPORTED;
  CUpti_ClockControl_Status before{};
  if (x_api.version >= kControlsCachesAndClocks && x_api.cuptiClockControlLock &&
      x_api.cuptiClockControlUnlock) {
    // CUPTI says yes to a lock over somebody else's, and leaves the clocks as they are.
    if (x_api.cuptiClockControlGetStatus) x_api.cuptiClockControlGetStatus(context, &before);
    rc = x_api.cuptiClockControlLock(context, static_cast<CUpti_ClockControl_Mode>(x_mode));
  }
  x_result.store(rc);
  if (rc != CUPTI_SUCCESS) return x_state.store(State::kRefused);
  if (static_cast<int>(before) == kClocksAreLocked) return x_state.store(State::kTheirs);
  g_api.store(&x_api);
  g_holder.store(getpid());
  static const int at_exit = std::atexit(unlock);  // before CUPTI's own, which was loaded earlier
  static_cast<void>(at_exit);
  x_state.store(State::kHeld);
}

void ClockLock::release() noexcept {
  if (x_state.load() == State::kHeld) unlock();
}

}  // namespace cuptiprof
