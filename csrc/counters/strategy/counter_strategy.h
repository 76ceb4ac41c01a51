// A way of collecting counters, as the session sees it. The four strategies:
//   replay   each selected launch by itself; CUPTI runs it once per pass (kernel_counters)
//   iterate  one pass group at a time, rotated over steps or over occurrences of a kernel (kernel_counters)
//   range    selected regions as user ranges (region_counters)
//   sample   the whole device at an interval (pm_sampler)
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "counters/plan/planner.h"
#include "counters/strategy/clock_lock.h"
#include "counters/strategy/counter_rows.h"
#include "counters/strategy/launch_selector.h"
#include "cupti/captures.h"

namespace cuptiprof {

struct CounterOptions {
  Strategy strategy = Strategy::kReplay;
  std::string chip;
  std::vector<PassGroup> groups;  // replay: one; iterate: of one pass each; sample: one of one pass
  SelectorOptions selector;
  size_t row_bytes = 0;          // room for values; 0: a quarter of what the session has for tables
  bool keep_latest_rows = true;  // when it is full, the oldest rows go; else the newest
  uint32_t batch = 256;          // ranges decoded together
  int turn_timeout_ms = 200;     // how long a launch waits for another counted one
  uint16_t levels = 1;           // range: nesting levels measured, when the work is repeated
  uint64_t interval = 100'000;   // sample: ns, or system clock cycles where the chip has no time trigger
  bool interval_in_cycles = false;
  bool keep_latest = true;  // sample: the hardware buffer is a ring
  uint64_t hardware_buffer = 64u << 20;
  bool resets_caches = false;                      // before each pass; not sample
  int clocks = 0;                                  // CUpti_ClockControl_Mode; 0: left alone
  bool clocks_are_wanted = false;                  // asked for by the user: start() fails without them
  std::vector<uint32_t> devices;                   // sample; empty: those that the process uses
  bool waits_for_window = false;                   // collection begins with cudaProfilerStart
  std::vector<CUcontext> (*contexts)() = nullptr;  // in which work was launched; filled in by the session
};

// What was selected and not measured, by reason.
#define CP_COUNTER_EVENTS(X)                                                                            \
  X(busy, "launches or regions that came while another one was being measured")                         \
  X(captured, "launches that were captured into a graph and did not run")                               \
  X(capturing, "launches and regions that came while a CUDA graph was being captured in the process")   \
  X(failed, "launches, regions or samples that CUPTI refused to measure")                               \
  X(not_run, "selected launches that failed in the driver (not a loss)")                                \
  X(mixed, "launches and regions beside which other work ran on their context")                         \
  X(no_room, "measured ranges for whose values there was no room")                                      \
  X(behind, "launches and regions that came while the values of too many earlier ones were waited for") \
  X(dropped, "ranges that CUPTI dropped")                                                               \
  X(no_context, "regions in which nothing ran, before there was a CUDA context")                        \
  X(nested, "regions inside a measured one")                                                            \
  X(differing, "passes of repeated work that had other regions than the first")                         \
  X(crossing, "regions of one thread that overlapped without being nested")                             \
  X(overwritten, "samples that the GPU overwrote before they were read")                                \
  X(unread, "times that reading what a stopped device still held took too long")                        \
  X(other_chip, "launches and regions on a device of another chip than the metrics were planned for")   \
  X(overflows, "times the hardware buffer of samples overflowed")                                       \
  X(unfinished, "ranges that were open when the session stopped, or whose passes did not all run")

struct CounterEvents {
#define CP_EVENT(name, doc) std::atomic<uint64_t> name{0};
  CP_COUNTER_EVENTS(CP_EVENT)
#undef CP_EVENT
  std::atomic<int> error{0};                     // first code CUPTI refused with
  std::atomic<const char*> error_call{nullptr};  // by which function

  void fail(CUptiResult rc, const char* call, uint64_t ranges = 1) noexcept {
    failed.fetch_add(ranges, std::memory_order_relaxed);
    int none = 0;
    if (error.compare_exchange_strong(none, static_cast<int>(rc))) error_call.store(call);
  }
};

class CounterStrategy {
 public:
  virtual ~CounterStrategy() = default;

  // Called by the session, one call at a time; launches and regions go on meanwhile on other threads.
  // `begin` comes first and throws Error; the others count what they cannot do. After `finish` said true
  // none of them is called any more. `captures`: until when streams that are being captured in
  // other threads are waited for.

  // Takes what it needs of CUPTI; counts from then on.
  virtual void begin() {}
  // Collection as a whole goes off and on.
  virtual void pause(Deadline /*captures*/) noexcept {}
  virtual void resume() noexcept {}
  // A training step ended.
  virtual void step() noexcept {}
  // What was measured so far is in `rows`; counting goes on.
  virtual void complete(Deadline /*captures*/) noexcept {}
  // After complete(): those rows were taken by the caller,
  virtual void kept() noexcept {}
  // or thrown away, so that the steps since the last ones taken come again.
  virtual void discarded() noexcept {}
  // Repeated work (strategy range): begins the next pass. False: all passes are done.
  virtual bool next_pass() { return false; }
  // The repeated work failed: what was measured of it is forgotten.
  virtual void abandon_passes() noexcept {}
  // The end: everything measured is in `rows`, and nothing is left switched on. False: a launch hangs inside
  // CUPTI, so that something is; may be called again.
  virtual bool finish(Deadline /*captures*/) noexcept { return true; }
  // Before another finish(): the thread whose launch hung has ended, so that nobody is inside any more.
  virtual void everyone_left() noexcept {}

  // Who of it is told of launches and regions; null: nobody.
  virtual LaunchObserver* launch_observer() noexcept { return nullptr; }
  virtual RegionObserver* region_observer() noexcept { return nullptr; }

  CounterRows& rows() noexcept { return x_rows; }
  CounterEvents& events() noexcept { return x_events; }
  const CounterOptions& options() const noexcept { return x_options; }
  LaunchSelector& selector() noexcept { return x_selector; }
  ClockLock& clocks() noexcept { return x_clocks; }

 protected:
  CounterStrategy(std::shared_ptr<const Api> api, CounterOptions options);
  const std::shared_ptr<const Api> x_api;
  const CounterOptions x_options;
  CounterEvents x_events;
  CounterRows x_rows;
  LaunchSelector x_selector;
  ClockLock x_clocks;
};

}  // namespace cuptiprof
