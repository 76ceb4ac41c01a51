// The range profiler of one context: configuration, the pass it is in, ranges collected and not yet decoded.
// Threads that launch call run_kernel and add_to_ranges, the profiler's thread the rest.
#pragma once
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "sim/counters/counter_image.h"
#include "sim/counters/counter_model.h"
#include "sim/counters/counting.h"
#include "sim/machine/work.h"

namespace sim {

class RangeSession {
 public:
  RangeSession(Context& context, const Chip& chip) : x_context(context), x_chip(chip) {}

  // CUPTI's functions of these names.
  CUptiResult data_size(CUpti_RangeProfiler_GetCounterDataSize_Params& p);
  CUptiResult initialize_data(CUpti_RangeProfiler_CounterDataImage_Initialize_Params& p);
  CUptiResult configure(const CUpti_RangeProfiler_SetConfig_Params& p);
  CUptiResult start();
  CUptiResult stop(CUpti_RangeProfiler_Stop_Params& p);
  CUptiResult push(const char* name);
  CUptiResult pop();
  CUptiResult decode(size_t& dropped);
  // Before the object goes: as a stop, whatever is open.
  void shut_down();

  // An automatic range of its own (run_counted); none: not started, or ranges are the user's.
  std::optional<CountedRun> run_kernel(const Work& work, Stream& stream, uint64_t duration);
  // To the ranges that the user has open.
  void add_to_ranges(const Work& work, const KernelCounters& counters);

 private:
  // A range in one pass. Where it goes: which round of all passes, nesting level, number in its pass.
  using Key = std::tuple<size_t, uint16_t, size_t>;
  struct Row {
    Key key;
    std::string name;
    uint64_t start, end;
    std::vector<std::pair<RawId, double>> values;
  };
  struct Open {
    std::string name;
    std::vector<double> sums;       // as the configuration's entries
    uint64_t start = 0;             // when it was pushed
    uint64_t end = 0;               // of the last kernel launched inside
    std::vector<uint32_t> streams;  // of those
  };

  bool kernel_replay() const { return x_replay == CUPTI_KernelReplay; }
  bool in_pass(const CounterConfig::Entry& e) const { return kernel_replay() || e.pass == x_pass; }
  void collect(uint16_t level, std::string name, uint64_t start, uint64_t end,
               const std::vector<double>& values);
  void add_running(uint64_t start, uint64_t end, uint64_t since, const std::vector<uint32_t>& own_streams,
                   std::vector<double>& sums);
  Placed execute(const Work& work, Stream& stream, uint64_t duration, double kept_bytes);
  void advance_pass();

  std::mutex x_mutex;  // guards all; a counted launch holds it until the kernel is done
  Context& x_context;
  const uint32_t x_process = this_process_id();  // a forked child has no context: nothing in it is counted
  const Chip& x_chip;
  std::vector<RawId> x_data_ids;  // of the last data_size
  size_t x_data_rows = 0;

  bool x_configured = false, x_started = false;
  CounterConfig x_config;
  uint8_t* x_image = nullptr;
  size_t x_image_size = 0;
  CUpti_ProfilerRange x_range = CUPTI_AutoRange;
  CUpti_ProfilerReplayMode x_replay = CUPTI_KernelReplay;
  size_t x_max_ranges = 0;
  uint16_t x_min_level = 1, x_levels = 1;

  size_t x_pass = 0, x_round = 0;
  uint16_t x_level = 1;  // the one whose ranges this pass collects
  std::vector<Open> x_open;
  std::map<uint16_t, size_t> x_next;  // number of the next range in this pass, by level
  size_t x_kernels = 0, x_undecoded = 0, x_dropped = 0;
  std::vector<Row> x_rows;
  std::map<Key, size_t> x_placed;  // where in the image
};

}  // namespace sim
