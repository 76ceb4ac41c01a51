// What launches and regions are told to while counters are armed. Implemented in counters/, called by
// collect/: neither knows the other.
#pragma once
#include <cuda.h>
#include <cupti_callbacks.h>

#include <cstdint>
#include <span>

namespace cuptiprof {

// A kernel launch on its way into the driver, or out of it. Views only.
struct LaunchEvent {
  const CUpti_CallbackData& call;
  CUpti_CallbackId cbid;
  uint32_t thread;                    // thread ID to show
  std::span<const uint32_t> regions;  // names of the open regions, outermost first; empty unless wanted
  bool captured = false;              // on the way out: it became a graph node and did not run
};

// An entry or an exit of a region on the calling thread.
struct RegionEvent {
  int64_t time;                       // run clock; the same as in the regions table
  uint32_t thread;                    // thread ID to show
  std::span<const uint32_t> regions;  // open ones including this, outermost first
  CUcontext context;                  // the thread's, else one that work was launched in; null: none yet
};

class LaunchObserver {
 public:
  virtual ~LaunchObserver() = default;
  // Every launch asks this: a few nanoseconds for a name that was seen before.
  virtual bool wants(const char* symbol) noexcept = 0;
  // True: left() follows, on the same thread.
  virtual bool entered(const LaunchEvent&) noexcept = 0;
  virtual void left(const LaunchEvent&) noexcept = 0;
  virtual void context_ends(CUcontext) noexcept {}
};

class RegionObserver {
 public:
  virtual ~RegionObserver() = default;
  // True: left() follows, on the same thread.
  virtual bool entered(const RegionEvent&) noexcept = 0;
  virtual void left(const RegionEvent&) noexcept = 0;
};

}  // namespace cuptiprof
