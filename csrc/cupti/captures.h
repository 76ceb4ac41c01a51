// Stream captures that are open anywhere in the process. Waiting for a context of which a stream is being
// captured invalidates the capture, whatever its mode and whichever thread waits (CUDA programming guide,
// "prohibited and unhandled operations"): whoever is about to wait asks here first.
//
// Fed by driver callbacks, which come as long as a session is attached. A capture that began before is known
// from the first launch that it captures; in a blocking stream, from the driver itself (is_conflicting).
#pragma once
#include <cuda.h>
#include <cupti_callbacks.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "cupti/api.h"

namespace cuptiprof {

// Of a wait; one deadline serves all waits of a control call. {}: no wait.
using Deadline = std::chrono::steady_clock::time_point;

class Captures {
 public:
  // A call that begins or ends a capture, on its way in and out.
  void called(const Api& api, CUpti_CallbackId cbid, const CUpti_CallbackData& call) noexcept;
  // A launch of the calling thread became a graph node.
  void launch_captured() noexcept {
    if (!any()) x_earlier.store(true);
  }
  void stream_ends(CUstream stream) noexcept;
  void context_ends(CUcontext context) noexcept;
  void forget_all() noexcept;

  [[nodiscard]] bool any() const noexcept { return x_open.load() != 0 || x_earlier.load(); }

  // The driver says that a stream is being captured which the current context's work implicitly waits for.
  static bool is_conflicting(const Api& api) noexcept;

  // From a successful enter() to leave() no capture begins: one that would waits a moment. False: one is
  // open, and did not end before `until` (those of the calling thread are not waited for).
  bool enter(Deadline until = {}) noexcept;
  void leave() noexcept {
    // Never below zero: forget_all may have come between.
    for (uint32_t n = x_guarded.load(); n != 0 && !x_guarded.compare_exchange_weak(n, n - 1);) {
    }
  }

  // How many have begun so far.
  [[nodiscard]] uint64_t begun() const noexcept { return x_begun.load(); }

 private:
  struct Slot {
    std::atomic<uint64_t> key{0};  // 0: free
    std::atomic<CUcontext> context{nullptr};
    std::atomic<uint64_t> thread{0};
  };
  void add(uint64_t key, CUcontext context) noexcept;
  bool remove(uint64_t key) noexcept;
  bool only_of_this_thread() const noexcept;

  static constexpr size_t kMax = 128;  // at a time; beyond them they are counted only
  std::array<Slot, kMax> x_slots;
  std::atomic<uint32_t> x_open{0};
  std::atomic<uint32_t> x_untracked{0};  // of x_open, without a slot
  std::atomic<bool> x_earlier{false};    // one that began before we could see it
  std::atomic<uint32_t> x_guarded{0};    // threads between enter() and leave()
  std::atomic<uint64_t> x_begun{0};
};

inline constinit Captures g_captures;

// While it lives, and is true, no capture is open.
class NoCapture {
 public:
  explicit NoCapture(Deadline until = {}) noexcept : x_entered(g_captures.enter(until)) {}
  ~NoCapture() {
    if (x_entered) g_captures.leave();
  }
  NoCapture(const NoCapture&) = delete;
  NoCapture& operator=(const NoCapture&) = delete;
  explicit operator bool() const noexcept { return x_entered; }

 private:
  const bool x_entered;
};

}  // namespace cuptiprof
