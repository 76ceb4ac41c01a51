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
  // A range begins; at most one more than `capacity` may be pending.
  bool open(const CounterRow& row, CounterEvents& events) noexcept;
  // The newest open range ends. `keep` false: it measured nothing.
  void close(int64_t end, bool keep, CounterEvents& events) noexcept;
  [[nodiscard]] bool full() const noexcept { return x_pending.size() == x_capacity; }

  // The same work comes again for the next pass. True: another pass is needed, and begun.
  bool next_pass(CounterEvents& events) noexcept;
  // Stops, decodes, evaluates; every pending range becomes a row.
  void finish(const MetricHost& host, CounterRows& rows, CounterEvents& events) noexcept;

  // Ranges on hold do nothing to launches.
  void hold(CounterEvents& events) noexcept;

 private:
  struct Pending {
    CounterRow row;
    bool keep = true;
    bool is_open = true;
  };
  std::unique_ptr<RangeProfiler> x_profiler;
  const uint32_t x_capacity;
  uint16_t x_group = 0xffff;
  bool x_first_pass = true;
  uint32_t x_index = 0;  // of the next range in this pass
  std::vector<Pending> x_pending;
  std::vector<uint32_t> x_open;  // indices of the open ranges, outermost first
  std::vector<double> x_values;
};

}  // namespace cuptiprof
