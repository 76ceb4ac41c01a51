// Counters of regions: strategy range. A selected region is one user range over everything its context runs.
//
// One pass is measured as the program goes. Several passes need the work to be repeated (next_pass), and so
// do nested regions: the hardware counts one nesting level at a time.
#pragma once
#include <memory>
#include <vector>

#include "counters/range/context_idle.h"
#include "counters/range/range_batch.h"
#include "counters/range/retry.h"
#include "counters/range/turn.h"
#include "counters/strategy/counter_strategy.h"
#include "counters/strategy/planned_chip.h"

namespace cuptiprof {

class RegionCounters final : public CounterStrategy, public RegionObserver, public LaunchObserver {
 public:
  RegionCounters(std::shared_ptr<const Api> api, CounterOptions options);

  void begin() override { x_evaluator.start(); }
  void pause(Deadline captures) noexcept override;
  void resume() noexcept override { x_on.store(true); }
  bool finish(Deadline captures) noexcept override;
  void complete(Deadline captures) noexcept override;
  bool next_pass() override;
  void abandon_passes() noexcept override;
  RegionObserver* region_observer() noexcept override { return this; }
  LaunchObserver* launch_observer() noexcept override { return this; }

  bool entered(const RegionEvent& region) noexcept override;
  void left(const RegionEvent& region) noexcept override;

  // A region entered before there is a context begins with the first launch inside.
  bool wants(const char*) noexcept override { return x_waiting.load(std::memory_order_relaxed); }
  bool entered(const LaunchEvent& launch) noexcept override;
  void left(const LaunchEvent&) noexcept override {}
  void context_ends(CUcontext context) noexcept override;

 private:
  struct PerContext {
    CUcontext context;
    uint32_t index;                     // of all contexts there were
    std::unique_ptr<RangeBatch> batch;  // null: CUPTI refused
    std::unique_ptr<ContextIdle> idle;
    int refused = 0;  // CUPTI's code
    Retry retry;      // when it was busy
  };
  PerContext* context_of(CUcontext context) noexcept;
  bool open(CUcontext context, CounterRow row) noexcept;
  void finish_batch(PerContext& c) noexcept;
  void finish_closed(Deadline captures) noexcept;
  void finish_batches(Deadline captures) noexcept;
  void release() noexcept;
  bool is_repeated() const noexcept;

  const PlannedChip x_planned;
  std::vector<RangeConfig> x_configs;
  std::atomic<bool> x_on{true};
  std::atomic<bool> x_waiting{false};  // the owner's region has no context yet
  Turn x_turn;                         // guards what follows; held inside single calls only
  // Whose outermost measured region is open; 0: nobody's. An address: shown thread IDs can be alike.
  uintptr_t x_owner = 0;
  uint32_t x_depth = 0;            // measured regions that are open
  bool x_crossed = false;          // they were not left innermost first
  CounterRow x_row;                // of the waiting region
  uint64_t x_captures_before = 0;  // streams captured so far when the outermost region was entered
  RangeBatch* x_current = nullptr;
  std::vector<PerContext> x_contexts;
  uint32_t x_contexts_seen = 0;
  uint32_t x_round = 0;  // repeated work that ended
  uint16_t x_group = 0;
  RangeEvaluator x_evaluator;  // the last: it ends first
};

}  // namespace cuptiprof
