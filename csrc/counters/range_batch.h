// User ranges of one pass on one context: pushed under their number, decoded together, turned into rows.
#pragma once
#include <cuda.h>

#include <memory>
#include <vector>

#include "counters/counter_strategy.h"
#include "counters/range_profiler.h"

namespace cuptiprof {

// Whoever holds the strategy's turn may use it.
class RangeBatch {
 public:
  RangeBatch(std::unique_ptr<RangeProfiler> profiler, uint32_t capacity);

  // Ready for ranges of this group; what was measured in another one is finished first.
  bool prepare(const RangeConfig& config, uint16_t group, uint16_t levels, const MetricHost& host,
               CounterRows& rows, CounterEvents& events) noexcept;
  // A range begins; row.sequence is where numbering starts. False: it does not, which is counted.
  bool open(const CounterRow& row, CounterEvents& events) noexcept;
  // Counting ends for the newest open range; close() comes next. A failure is counted.
  CUptiResult pop(CounterEvents& events) noexcept;
  // The newest open range ends. `keep` false: it measured nothing, and that is counted.
  void close(int64_t end, bool keep, CounterEvents& events) noexcept;
  [[nodiscard]] bool full() const noexcept { return x_pending.size() >= x_capacity; }
  [[nodiscard]] bool has_open() const noexcept { return !x_open.empty(); }
  // CUPTI did not do as told: the profiler is of no use any more, and may count what it should not.
  [[nodiscard]] bool is_broken() const noexcept { return x_broken; }

  // The same work comes again for the next pass. True: another pass is needed, and begun.
  bool next_pass(CounterEvents& events) noexcept;
  // The work failed on the way: what is pending is forgotten and counted.
  void abandon(CounterEvents& events) noexcept;
  // Stops, decodes, evaluates; every pending range becomes a row.
  void finish(const MetricHost& host, CounterRows& rows, CounterEvents& events) noexcept;

  // As finish(), without the decoding, which waits for the GPU: pending ranges have no values, which is
  // counted in `reason`.
  void give_up(std::atomic<uint64_t>& reason, CounterEvents& events) noexcept;

  // Ranges on hold do nothing to launches.
  void hold(CounterEvents& events) noexcept;

 private:
  struct Pending {
    CounterRow row;
    uint32_t passes = 0;  // in which it was closed
    bool keep = true;     // neither a row nor counted yet
  };
  bool stop(CounterEvents& events) noexcept;
  void start_anew() noexcept;
  size_t count_kept() const noexcept;

  std::unique_ptr<RangeProfiler> x_profiler;
  const uint32_t x_capacity;
  uint16_t x_group = 0xffff;
  uint32_t x_pass = 1;
  bool x_all_passes = false;  // at the last stop
  bool x_broken = false;
  bool x_popped = false;
  uint32_t x_index = 0;  // of the next range in this pass
  std::vector<Pending> x_pending;
  std::vector<uint32_t> x_open;  // indices of the open ranges, outermost first
  std::vector<double> x_values;
};

}  // namespace cuptiprof
