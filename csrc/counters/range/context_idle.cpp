#include "counters/range/context_idle.h"

#include <time.h>

namespace cuptiprof {

ContextIdle::~ContextIdle() {
  if (x_event) x_api.cuEventDestroy_v2(x_event);
}

bool ContextIdle::wait(CUcontext context, std::chrono::milliseconds patience) noexcept {
  const Api& a = x_api;
  if (!a.cuCtxRecordEvent || !a.cuEventCreate || !a.cuEventQuery || !a.cuEventDestroy_v2) return true;
  if (!x_event && a.cuEventCreate(&x_event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
    x_event = nullptr;
    return true;
  }
  if (x_gave_up && a.cuEventQuery(x_event) == CUDA_ERROR_NOT_READY) return false;
  x_gave_up = false;
  if (a.cuCtxRecordEvent(context, x_event) != CUDA_SUCCESS) return true;
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (long pause = 1'000; a.cuEventQuery(x_event) == CUDA_ERROR_NOT_READY;
       pause = pause < 20'000 ? 2 * pause : pause) {
    if (std::chrono::steady_clock::now() >= deadline) {
      x_gave_up = true;
      return false;
    }
    const timespec nap{0, pause};
    nanosleep(&nap, nullptr);
  }
  return true;
}

}  // namespace cuptiprof
