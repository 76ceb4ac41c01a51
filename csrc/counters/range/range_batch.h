// Ranges of one pass on one context, decoded together and turned into rows.
//
// User ranges are pushed under their number: regions. They last from push to pop, the host's time included,
// so that launches are automatic ranges, which last as long as their kernel. Those bear no name but their
// number since the start: they are told apart by the order of the launches, and unless there are as many as
// launches none is believed.
#pragma once
#include <cuda.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include "counters/range/range_evaluator.h"
#include "counters/range/range_profiler.h"
#include "counters/strategy/counter_strategy.h"

namespace cuptiprof {

inline constexpr size_t kMaxContexts = 64;  // that one strategy counts in at a time

// Whoever holds the strategy's turn may use it.
class RangeBatch {
 public:
  // `mode`: of kUserRange or kAutoRange. `strangers`: launches that ran between automatic ranges without a
  // row; who counts one there does so before it runs.
  RangeBatch(std::unique_ptr<RangeProfiler> profiler, RangeMode mode, uint32_t capacity,
             const std::atomic<uint64_t>* strangers = nullptr);

  // Ready for ranges of this group; what was measured in another one is finished first. `patience`: for an
  // earlier batch to be evaluated, when that takes longer than measuring.
  bool prepare(const RangeConfig& config, uint16_t group, uint16_t levels, RangeEvaluator& evaluator,
               CounterEvents& events, std::chrono::milliseconds patience) noexcept;
  // A range begins; row.sequence is where numbering starts. False: it does not, which is counted.
  bool open(const CounterRow& row, CounterEvents& events) noexcept;
  // Counting ends for the newest open range; close() comes next. A failure is counted. `stay`: automatic
  // ranges go on, and whatever is launched from now on is one of them.
  CUptiResult pop(CounterEvents& events, bool stay = false) noexcept;
  // The newest open range ends. `keep` false: it measured nothing, and that is counted.
  void close(int64_t end, bool keep, CounterEvents& events) noexcept;
  [[nodiscard]] bool full() const noexcept { return pending_count() >= room(); }
  // Nothing more may be measured before finish().
  [[nodiscard]] bool must_finish() const noexcept { return full() || x_doubtful || x_decodes_each; }
  // Whether automatic ranges may go on from one launch to the next.
  [[nodiscard]] bool may_stay() const noexcept { return x_stays && !x_decodes_each; }
  [[nodiscard]] bool is_started() const noexcept { return x_profiler->started(); }
  [[nodiscard]] bool has_open() const noexcept { return !x_open.empty(); }
  // CUPTI did not do as told: the profiler is of no use any more, and may count what it should not.
  [[nodiscard]] bool is_broken() const noexcept { return x_broken; }

  // The same work comes again for the next pass. True: another pass is needed, and begun.
  bool next_pass(CounterEvents& events) noexcept;
  // The work failed on the way: what is pending is forgotten and counted.
  void abandon(CounterEvents& events) noexcept;
  // Stops, decodes and hands over; every pending range becomes a row or is counted.
  void finish(RangeEvaluator& evaluator, CounterEvents& events) noexcept;

  // As finish(), without the decoding, which waits for the GPU: pending ranges have no values, which is
  // counted in `reason`.
  void give_up(std::atomic<uint64_t>& reason, CounterEvents& events) noexcept;

  // Ranges on hold do nothing to launches.
  void hold(CounterEvents& events) noexcept;

 private:
  // Only while they are ours.
  std::vector<PendingRange>& pending() const noexcept { return x_now->pending; }
  bool is_handed_over() const noexcept { return x_now->handed_over.load(std::memory_order_acquire); }
  size_t pending_count() const noexcept { return is_handed_over() ? 0 : pending().size(); }
  bool is_empty() const noexcept { return pending_count() == 0; }
  bool stop(CounterEvents& events, uint64_t lost = 0) noexcept;
  void start_anew() noexcept;
  size_t count_kept() const noexcept;
  size_t room() const noexcept {
    const size_t most = x_profiler->config() ? std::min<size_t>(x_capacity, x_profiler->room()) : x_capacity;
    return x_automatic ? std::min<size_t>(most, x_trusted) : most;
  }
  enum class Match { kNone, kInOrder, kByName };
  Match match(size_t ranges) noexcept;
  uint64_t strangers() const noexcept { return x_strangers ? x_strangers->load() : 0; }

  std::unique_ptr<RangeProfiler> x_profiler;
  const bool x_automatic;
  const uint32_t x_capacity;
  const std::atomic<uint64_t>* const x_strangers;
  uint64_t x_strangers_before;  // the batch began
  // What this CUPTI makes of kernels between start and stop is learnt on a few: each batch that came out
  // right lets the next be larger.
  static constexpr uint32_t kFirstTrusted = 4;
  uint32_t x_trusted = kFirstTrusted;
  bool x_stays = true;          // only launches became ranges
  bool x_decodes_each = false;  // ranges from before a start do not outlive it
  uint16_t x_group = 0xffff;
  uint32_t x_pass = 1;
  bool x_all_passes = false;  // at the last stop
  bool x_broken = false;
  bool x_popped = false;
  bool x_doubtful = false;  // whether the newest launch made a range is not known
  uint32_t x_starts = 0;    // of the profiler, since the batch began
  uint32_t x_index = 0;     // of the next range in this pass
  // One is measured into while the other one is evaluated.
  std::array<std::shared_ptr<DecodedRanges>, 2> x_images;
  std::shared_ptr<DecodedRanges> x_now;  // never null; handed over: prepare() takes another one
  std::vector<uint32_t> x_open;          // indices of the open ranges, outermost first
};

}  // namespace cuptiprof
