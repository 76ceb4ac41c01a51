// One profiling session: idle -> armed -> running <-> paused -> stopped. At most one in a process at a time.
//
// armed: attached to CUPTI, nothing switched on (waiting for cudaProfilerStart, or for the first active
// step). Called by the bindings, without the GIL. Control calls may block; one at a time, from whatever
// thread (the Python side serialises them). counts(), losses(), notes() and state() may come meanwhile.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock_pairs.h"
#include "collect/activity.h"
#include "collect/records/decoder.h"
#include "collect/torch/operator_observer.h"
#include "counters/strategy/counter_strategy.h"
#include "store/live_sums.h"
#include "store/store.h"
#include "threads/frame_tree.h"
#include "threads/scope_label.h"

namespace cuptiprof {

// What else, beside regions and steps, tells whose a launch is.
struct SessionSources {
  ScopeLevel nvtx = ScopeLevel::kOff;
  FrameLevel frames = FrameLevel::kOff;  // Python's: the innermost line of the user's, or the whole stack
  bool modules = false;                  // PyTorch's
  torch::Wanted operators;               // PyTorch's

  bool walks_frames() const { return frames != FrameLevel::kOff || modules; }
  // Launches tell more than their region (LaunchOrigin).
  bool at_launch() const {
    return nvtx == ScopeLevel::kLaunch || operators.level == ScopeLevel::kLaunch || walks_frames();
  }
};

struct SessionOptions {
  std::shared_ptr<const Api> api;
  ActivityOptions activity;  // its buffer_bytes and buffer_count are filled in here
  Keep keep = Keep::kLatest;
  // Everything the session keeps: activity buffers, tables with their strings, the correlation map, names and
  // paths of regions, values of counters.
  size_t budget_bytes = 256u << 20;
  size_t buffer_bytes = 0;                     // of one activity buffer; 0: 256 KiB
  size_t buffer_count = 0;                     // of those; 0: as many as an eighth of the budget holds
  std::shared_ptr<const KernelFilter> filter;  // which kernels are kept; null: all
  SessionSources sources;                      // of scopes, beside regions and steps
  bool ages_texts = false;                     // Decoder::Options
  bool live = false;                           // sums are made while it runs, see live()
  std::function<void()> start_frames;  // sets g_frame_source, for sources.walks_frames(); throws Error
  std::string label;                   // who started it, for the error that a second session gets
  int drain_timeout_ms = 1000;         // how long records of launches are waited for that do not come
  // Null: no counters. The caller gives strategy, pass groups and the selector's filter; what it is to know
  // of the process (contexts, names of regions, whether it waits for a window) is filled in by start().
  std::optional<CounterOptions> counters;
};

struct SessionCounts {
  uint64_t launches = 0;              // kernel launches seen
  uint64_t kernels_received = 0;      // kernel records that reached the decoder
  uint64_t kernels_lost_in_pool = 0;  // of losses.pool_exhausted
  GraphTracker::Counts graphs;
  uint64_t without_times = 0;  // records of GPU work that CUPTI had no times for
  size_t live_bytes = 0;
  int64_t decoder_ns = 0;  // CPU time of the decoder's thread
};

class Session {
 public:
  // In a process that was forked while a session ran: what started that. It can have none of its own.
  static std::string inherited();

  explicit Session(SessionOptions options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Attaches; collects at once unless `armed`. Throws Error with nothing left behind.
  void start(bool armed);
  // `waits`: for the GPU. Else what it has not finished may be missing, or come after resume().
  void pause(bool waits = true);
  void resume();
  // Completes what was launched so far and hands it over; the session goes on.
  std::shared_ptr<Store> take();
  // Completes what was launched so far and throws it away (a warm-up).
  void discard();
  // Everything off; the rest of the data. Safe to call once, in any state but idle.
  std::shared_ptr<Store> stop();
  // What the last take() or stop() handed over, until it is forgotten: the caller may have been interrupted
  // (Ctrl-C) before it got hold of it.
  std::shared_ptr<Store> taken() const { return x_taken; }
  void forget_taken() noexcept;

  // After stop(): takes CUPTI itself out of the process. A later session attaches it again. Throws Error when
  // another session runs, another tool holds CUPTI, or a launch counted by a session still hangs inside it.
  void finalize();

  // A training step ended, and the one of this number begins; with counters the next pass group is on.
  void step(uint32_t number);
  // Repeated work (strategy range): true while it must run once more.
  bool next_pass();
  // The repeated work raised: forget its passes so far.
  void abandon_passes();
  // What was measured until it is forgotten with taken(); null without counters.
  const CounterRows::Taken* take_counters();
  CounterStrategy* counters() const { return x_counters.get(); }

  std::shared_ptr<Store> next_segment(int timeout_ms);
  SessionCounts counts() const;
  // CUDA was initialised before start().
  bool cuda_was_up() const { return Activity::instance().cuda_was_up(); }
  std::vector<std::pair<std::string, uint64_t>> losses() const;
  // What was collected so far; collection goes on, and nothing is waited for but what CUPTI can give back.
  // Throws Error: not running nor paused, counters are read, or no memory.
  std::shared_ptr<Store> snapshot();
  // What the result should say beside its numbers.
  std::vector<std::string> notes() const { return Activity::instance().notes(); }
  const char* state() const;
  // What was collected so far, as sums; null unless asked for. Lives on when the session does not.
  std::shared_ptr<LiveSums> live() const { return x_live; }
  // Since start(), in any state.
  ClockPairs& clocks() { return x_clocks; }

 private:
  enum class State { kIdle, kArmed, kRunning, kPaused, kStopped };
  void require(bool ok, const char* call) const;
  void refuse_in_child() const;
  // For the names of regions, and as much again for their paths.
  size_t region_bytes() const { return x_options.budget_bytes / 32; }
  // For labels of scopes. Where they age, there are two generations and those that are in use.
  size_t label_bytes() const { return x_options.budget_bytes / (x_options.ages_texts ? 16 : 32); }
  // For the nodes of CUDA graphs.
  size_t graph_bytes() const {
    return x_options.activity.follows_launches && x_options.activity.records_graph_nodes()
               ? x_options.budget_bytes / 32
               : 0;
  }
  void start_counters();
  void judge_step() noexcept;
  void stop_counters(Deadline captures) noexcept;
  // Of a control call that begins now.
  Deadline capture_deadline() const noexcept;

  SessionOptions x_options;
  std::atomic<State> x_state{State::kIdle};  // asked for by any thread, x_final with it
  int x_pid = 0;
  size_t x_table_bytes = 0;
  std::shared_ptr<LiveSums> x_live;  // set once
  ClockPairs x_clocks;               // before the decoder, whose thread looks at it
  std::unique_ptr<Decoder> x_decoder;
  std::shared_ptr<CounterStrategy> x_counters;
  SessionCounts x_final;
  std::shared_ptr<Store> x_taken;
  std::optional<CounterRows::Taken> x_taken_counters;
};

}  // namespace cuptiprof
