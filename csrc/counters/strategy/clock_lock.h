// The clocks of a device, held while a session counts (CUDA 13.4). CUPTI has one lock a process, which
// outlives the process: it is given back when the session stops, and at exit.
#pragma once
#include <atomic>

#include "cupti/api.h"

namespace cuptiprof {

class ClockLock {
 public:
  // `mode`: CUpti_ClockControl_Mode; 0: clocks are left alone.
  ClockLock(const Api& api, int mode) noexcept : x_api(api), x_mode(mode) {}
  ~ClockLock() { release(); }
  ClockLock(const ClockLock&) = delete;
  ClockLock& operator=(const ClockLock&) = delete;

  enum class State { kOpen, kHeld, kTheirs, kRefused };
  // Before a profiler is enabled on the context; once for all contexts. One thread at a time.
  void hold(CUcontext context) noexcept;
  void release() noexcept;

  // Stays what it was after the release. kTheirs: somebody else had locked them before.
  [[nodiscard]] State state() const noexcept { return x_state.load(); }
  [[nodiscard]] CUptiResult result() const noexcept { return x_result.load(); }

 private:
  const Api& x_api;
  const int x_mode;
  std::atomic<State> x_state{State::kOpen};
  std::atomic<CUptiResult> x_result{CUPTI_SUCCESS};
};

}  // namespace cuptiprof
