// What launches and regions are told to while counters are armed. Implemented in counters/, called by
// collect/: neither knows the other.
#pragma once
#include <cuda.h>
#include <cupti_callbacks.h>

#include <cstdint>
#include <span>

#include "launch/exclusion.h"

namespace cuptiprof {

// A kernel launch on its way into the driver, or out of it. Views only.
struct LaunchEvent {
  const CUpti_CallbackData& call;
  CUpti_CallbackId cbid;
  uint32_t thread;                    // thread ID to show
  std::span<const uint32_t> regions;  // labels of the open regions, outermost first; empty unless wanted
  std::span<const uint32_t> scopes;   // the same of scopes of the level "launch"
  uint32_t frame = 0;                 // where Python stands, a node of g_frame_tree; 0: not known
  bool captured = false;              // on the way out: it became a graph node and did not run
};

// An entry or an exit of a region on the calling thread.
struct RegionEvent {
  int64_t time;                       // run clock; about the same as in the regions table
  uint32_t thread;                    // thread ID to show
  std::span<const uint32_t> regions;  // open ones including this, outermost first
  CUcontext context;   // the thread's, else the only one that work was launched in; null: none yet
  uint32_t level = 0;  // how many counted regions lie around it on its thread
};

class LaunchObserver {
 public:
  virtual ~LaunchObserver() = default;
  // Asked of every launch that the gate (launch_gate.h) lets through.
  virtual bool wants(const char* symbol) noexcept = 0;
  // True: left() follows, on the same thread.
  virtual bool entered(const LaunchEvent&) noexcept = 0;
  virtual void left(const LaunchEvent&) noexcept = 0;
  virtual void context_ends(CUcontext) noexcept {}
  // Launches of other threads on the same context would be counted with the measured one: they wait.
  virtual bool measures_alone() const noexcept { return false; }
  // An ordinary launch is about to enter this context while a profiler stays started (exclusion.h): it is
  // stopped before the launch takes its place.
  virtual void make_way(std::atomic<const void*>& place, CUcontext context,
                        std::chrono::milliseconds patience) noexcept {
    g_exclusion.enter(place, context, patience);
  }
  // A stream is about to be captured, and nothing may wait for the GPU from then on: what stays started is
  // stopped, since it would wait at each launch.
  virtual void capture_begins() noexcept {}
  // False: it is asked about no launch at all.
  virtual bool looks_at_launches() const noexcept { return true; }
  // Collection as a whole goes on or off (cudaProfilerStart and Stop).
  virtual void window(bool /*open*/) noexcept {}
  // Which regions are open can decide whether a launch is wanted.
  virtual bool looks_at_regions() const noexcept { return false; }
  // So can the operators of PyTorch that are.
  virtual bool looks_at_operators() const noexcept { return false; }
  // So can the line of the Python program.
  virtual bool looks_at_lines() const noexcept { return false; }
  // While this training step runs no launch is wanted (its number + 1; 0: none was marked).
  virtual bool refuses_step(uint32_t /*step*/) const noexcept { return false; }
};

class RegionObserver {
 public:
  virtual ~RegionObserver() = default;
  // True: left() follows, on the same thread.
  virtual bool entered(const RegionEvent&) noexcept = 0;
  virtual void left(const RegionEvent&) noexcept = 0;
};

// Who is told, and of what; null: nobody. They must live until Activity::observe() said that all have left.
struct Observers {
  LaunchObserver* launches = nullptr;
  RegionObserver* regions = nullptr;
  // Threads keep the path of their open regions, so that launches can be told with it.
  bool keeps_paths = false;
};

}  // namespace cuptiprof
