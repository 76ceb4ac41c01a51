// Waits, never for long, until a context has nothing left to do: counters are the GPU's, and what was
// launched before a range and still runs would be counted with it.
#pragma once
#include <chrono>

#include "cupti/api.h"

namespace cuptiprof {

class ContextIdle {
 public:
  explicit ContextIdle(const Api& api) : x_api(api) {}
  ~ContextIdle();
  ContextIdle(const ContextIdle&) = delete;
  ContextIdle& operator=(const ContextIdle&) = delete;

  // The calling thread's current context. False: it was still busy after `patience`; that work is not waited
  // for again. True also where the driver cannot be asked (before CUDA 12.5). The caller keeps captures away.
  bool wait(CUcontext context, std::chrono::milliseconds patience) noexcept;

 private:
  const Api& x_api;
  CUevent x_event = nullptr;
  bool x_gave_up = false;  // on what x_event holds
};

}  // namespace cuptiprof
