#include "cupti/captures.h"

#include <time.h>

#include "cupti/cbids.h"

namespace cuptiprof {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kBeginPatience = std::chrono::milliseconds(100);

uint64_t this_thread() noexcept {
  static thread_local char here [[gnu::tls_model("initial-exec")]];
  return reinterpret_cast<uint64_t>(&here);
}

// A stream for as long as it lives. The default ones have one handle for all threads.
uint64_t key_of(CUstream stream) noexcept {
  const auto handle = reinterpret_cast<uint64_t>(stream);
  return handle <= 2 ? this_thread() | 1 : handle;
}

void nap() noexcept {
  const timespec pause{0, 200'000};
  nanosleep(&pause, nullptr);
}

}  // namespace

void Captures::add(uint64_t key, CUcontext context) noexcept {
  x_open.fetch_add(1);
  for (Slot& slot : x_slots) {
    uint64_t none = 0;
    if (slot.key.load() != 0 || !slot.key.compare_exchange_strong(none, key)) continue;
    slot.context.store(context);
    slot.thread.store(this_thread());
    return;
  }
  x_untracked.fetch_add(1);
}

bool Captures::remove(uint64_t key) noexcept {
  for (Slot& slot : x_slots) {
    if (slot.key.load() != key) continue;
    slot.context.store(nullptr);
    slot.thread.store(0);
    uint64_t expected = key;
    if (!slot.key.compare_exchange_strong(expected, 0)) continue;
    x_open.fetch_sub(1);
    return true;
  }
  uint32_t untracked = x_untracked.load();
  while (untracked != 0 && !x_untracked.compare_exchange_weak(untracked, untracked - 1)) {
  }
  if (untracked != 0) x_open.fetch_sub(1);
  return untracked != 0;
}

void Captures::called(const Api& api, CUpti_CallbackId cbid, const CUpti_CallbackData& call) noexcept {
  if (!call.functionParams) return;
  // All forms of these calls begin with their stream (generated_cuda_meta.h).
  const CUstream stream = *static_cast<const CUstream*>(call.functionParams);
  const auto* result = static_cast<const CUresult*>(call.functionReturnValue);
  const bool failed = result && *result != CUDA_SUCCESS;
  const bool entry = call.callbackSite == CUPTI_API_ENTER;
  if (is_capture_begin(cbid)) {
    if (!entry) {
      if (failed) remove(key_of(stream));
      return;
    }
    // Seen from before the driver begins until after it ended. Whoever waits for the GPU right now looked
    // before: it is given a moment, since what the driver makes of a capture that begins meanwhile is not
    // said anywhere.
    add(key_of(stream), call.context);
    x_begun.fetch_add(1);
    for (const auto deadline = Clock::now() + kBeginPatience; x_guarded.load() && Clock::now() < deadline;)
      nap();
  } else if (!entry) {
    // Ended by the wrong thread, or on a stream that only joined, it goes on.
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (failed && api.cuStreamIsCapturing && api.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
        status != CU_STREAM_CAPTURE_STATUS_NONE)
      return;
    if (!remove(key_of(stream))) x_earlier.store(false);
  }
}

void Captures::stream_ends(CUstream stream) noexcept {
  if (x_open.load() != 0 && reinterpret_cast<uint64_t>(stream) > 2)
    for (Slot& slot : x_slots)
      if (slot.key.load() == reinterpret_cast<uint64_t>(stream)) remove(slot.key.load());
}

void Captures::context_ends(CUcontext context) noexcept {
  if (x_open.load() == 0 || !context) return;
  for (Slot& slot : x_slots)
    if (const uint64_t key = slot.key.load(); key != 0 && slot.context.load() == context) remove(key);
}

void Captures::forget_all() noexcept {
  for (Slot& slot : x_slots) {
    slot.context.store(nullptr);
    slot.thread.store(0);
    slot.key.store(0);
  }
  x_open.store(0);
  x_untracked.store(0);
  x_earlier.store(false);
  x_guarded.store(0);
}

bool Captures::is_conflicting(const Api& api) noexcept {
  if (!api.cuStreamIsCapturing) return false;
  for (const CUstream stream : {CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
    // Of the legacy stream: CUDA_ERROR_STREAM_CAPTURE_IMPLICIT when a blocking stream is being captured, and
    // "the blocking stream capture is not invalidated" (cuda.h, cuStreamIsCapturing).
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult rc = api.cuStreamIsCapturing(stream, &status);
    if (rc == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) return true;
    if (rc == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE) return true;
  }
  return false;
}

bool Captures::only_of_this_thread() const noexcept {
  if (x_earlier.load() || x_untracked.load()) return false;
  for (const Slot& slot : x_slots)
    if (slot.key.load() != 0 && slot.thread.load() != this_thread()) return false;
  return true;
}

bool Captures::enter(Deadline until) noexcept {
  for (;;) {
    // Either this thread sees a capture that begins, or that one sees this thread (both orders are
    // sequentially consistent).
    x_guarded.fetch_add(1);
    if (!any()) return true;
    x_guarded.fetch_sub(1);
    if (only_of_this_thread() || Clock::now() >= until) return false;
    nap();
  }
}

}  // namespace cuptiprof
