// Events of the driver, as far as a profiler needs them: recorded for a whole context, and asked about.
#include <cuda.h>

#include <mutex>
#include <unordered_map>

#include "sim/machine/current_context.h"
#include "sim/machine/machine.h"
#include "sim/machine/stream_captures.h"

namespace sim {
namespace {

std::mutex g_events_mutex;                                       // guards the events
std::unordered_map<CUevent, uint64_t>& events() {                // when what was recorded ends
  static auto* all = new std::unordered_map<CUevent, uint64_t>;  // never destroyed (Machine::get)
  return *all;
}

}  // namespace
}  // namespace sim

using namespace sim;

SIM_EXPORT CUresult CUDAAPI cuEventCreate(CUevent* event, unsigned) {
  if (!event) return CUDA_ERROR_INVALID_VALUE;
  if (!current_context()) return CUDA_ERROR_INVALID_CONTEXT;
  static uintptr_t last = 0;
  const std::lock_guard lock(g_events_mutex);
  *event = reinterpret_cast<CUevent>(++last * 64);
  events()[*event] = 0;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult CUDAAPI cuEventDestroy_v2(CUevent event) {
  const std::lock_guard lock(g_events_mutex);
  return events().erase(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

// cuda.h: "captures all the activities of the context at the time of this call", and invalidates captures in
// it.
SIM_EXPORT CUresult CUDAAPI cuCtxRecordEvent(CUcontext context, CUevent event) {
  Context* c = Machine::get().find_context(context);
  if (!c) return CUDA_ERROR_INVALID_CONTEXT;
  if (invalidate_captures(c)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const std::lock_guard lock(g_events_mutex);
  const auto at = events().find(event);
  if (at == events().end()) return CUDA_ERROR_INVALID_HANDLE;
  at->second = c->busy_until.load();
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult CUDAAPI cuEventQuery(CUevent event) {
  Machine& m = Machine::get();
  uint64_t end = 0;
  {
    const std::lock_guard lock(g_events_mutex);
    const auto at = events().find(event);
    if (at == events().end()) return CUDA_ERROR_INVALID_HANDLE;
    end = at->second;
  }
  if (m.now() >= end) return CUDA_SUCCESS;
  if (m.virtual_clock()) m.advance(m.now() + m.api_call_ns());  // whoever asks again lets time pass
  return CUDA_ERROR_NOT_READY;
}
