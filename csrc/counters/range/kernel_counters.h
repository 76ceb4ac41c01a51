// Counters of selected kernel launches: strategies replay and iterate.
//
// replay, several passes: the range profiler runs from the entry of the launch to its exit in kernel replay
// mode; CUPTI saves memory and runs the kernel once per pass. One pass, and iterate: automatic ranges without
// replay, nothing is saved; where every launch is selected the profiler stays started from one to the next.
// Launches that are not selected see neither.
#pragma once
#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include "counters/range/context_idle.h"
#include "counters/range/range_batch.h"
#include "counters/range/range_evaluator.h"
#include "counters/range/range_profiler.h"
#include "counters/range/retry.h"
#include "counters/range/turn.h"
#include "counters/strategy/counter_strategy.h"
#include "counters/strategy/planned_chip.h"

namespace cuptiprof {

class KernelCounters final : public CounterStrategy, public LaunchObserver {
 public:
  KernelCounters(std::shared_ptr<const Api> api, CounterOptions options);
  ~KernelCounters() override;

  void begin() override { x_evaluator.start(); }
  void pause(Deadline captures) noexcept override;
  void resume() noexcept override { x_on.store(true); }
  void step() noexcept override;
  bool finish(Deadline captures) noexcept override;
  void everyone_left() noexcept override { x_turn.give_back(); }
  void complete(Deadline captures) noexcept override;
  void kept() noexcept override;
  void discarded() noexcept override;
  LaunchObserver* launch_observer() noexcept override { return this; }
  bool measures_alone() const noexcept override { return true; }

  bool wants(const char* symbol) noexcept override {
    return x_on.load(std::memory_order_relaxed) && x_selector.wants(symbol);
  }
  // Launches that skip_before_match counts must be shown wherever they come from.
  bool looks_at_regions() const noexcept override {
    const KernelFilter* f = x_options.selector.filter.get();
    return f && f->needs_regions() && f->spec().skip_before_match == 0;
  }
  bool refuses_step(uint32_t step) const noexcept override {
    const KernelFilter* f = x_options.selector.filter.get();
    return f && !f->matches_step(step) && f->spec().skip_before_match == 0;
  }
  bool looks_at_operators() const noexcept override {
    const KernelFilter* f = x_options.selector.filter.get();
    return f && f->needs_operators() && f->spec().skip_before_match == 0;
  }
  bool looks_at_lines() const noexcept override {
    const KernelFilter* f = x_options.selector.filter.get();
    return f && (f->needs_lines() || f->needs_modules()) && f->spec().skip_before_match == 0;
  }
  bool entered(const LaunchEvent& launch) noexcept override;
  void left(const LaunchEvent& launch) noexcept override;
  void context_ends(CUcontext context) noexcept override;
  void capture_begins() noexcept override;
  void make_way(std::atomic<const void*>& place, CUcontext context,
                std::chrono::milliseconds patience) noexcept override;

 private:
  static constexpr size_t kReplayCopies = 4;
  struct PerContext {
    CUcontext context = nullptr;
    uint32_t uid = 0;
    std::unique_ptr<RangeProfiler> replay;                             // of replay with several passes
    std::shared_ptr<DecodedRanges> replayed;                           // what it decodes into
    std::array<std::shared_ptr<DecodedRanges>, kReplayCopies> copies;  // of that, to be evaluated
    std::unique_ptr<RangeBatch> batch;                                 // of everything else
    std::unique_ptr<ContextIdle> idle;
    uint32_t breakdowns = 0;
    CounterRow row;   // of the running launch
    int refused = 0;  // CUPTI's code when it refused this context
    Retry retry;      // when it was busy
  };
  using KernelKey = std::array<uint64_t, 3>;
  struct KeyHash {
    size_t operator()(const KernelKey& k) const noexcept {
      return (k[0] * 0x9e3779b97f4a7c15ull ^ k[1]) * 0xbf58476d1ce4e5b9ull ^ k[2];
    }
  };

  PerContext* context_of(CUcontext context, uint32_t uid) noexcept;
  uint16_t group_for(const SelectedLaunch& launch) noexcept;
  enum class Outcome { kRan, kCaptured, kFailed, kMixed };
  bool is_valid(Outcome outcome) noexcept;
  void break_down(PerContext& c) noexcept;
  bool begin_replay(PerContext& c) noexcept;
  void end_replay(PerContext& c, Outcome outcome, CUptiResult stopped) noexcept;
  void finish_batch(PerContext& c) noexcept;
  void add_replayed(PerContext& c) noexcept;
  void finish_batches(Deadline captures) noexcept;
  void stop_all_of(CUcontext context) noexcept;
  void say_whether_resident() noexcept;
  bool is_capturing(CUstream stream) const noexcept;

  const PlannedChip x_planned;
  std::vector<RangeConfig> x_configs;
  const bool x_direct;     // no replay
  const bool x_selective;  // other launches come between: the profiler runs only around those selected
  std::atomic<bool> x_on{true};
  std::atomic<uint64_t> x_strangers{0};  // launches that ran while a profiler stayed started, without a row
  Turn x_turn;                           // guards what follows
  std::vector<PerContext> x_contexts;
  PerContext* x_current = nullptr;
  uint16_t x_group = 0;       // of the running step
  uint16_t x_kept_group = 0;  // of the first step whose values are not taken yet
  bool x_hangs = false;
  bool x_by_step = false;                                                // step() was called
  std::unordered_map<KernelKey, std::vector<uint32_t>, KeyHash> x_seen;  // occurrences measured, by group
  RangeEvaluator x_evaluator;                                            // the last: it ends first
};

}  // namespace cuptiprof
