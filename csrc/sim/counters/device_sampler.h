// PM sampling of one device: every interval the counters of whatever runs on it, through a hardware buffer
// that may overflow. Threads that launch add their kernels, the profiler's thread starts, stops and decodes.
#pragma once
#include <cupti_pmsampling.h>

#include <deque>
#include <mutex>
#include <vector>

#include "sim/counters/counter_image.h"
#include "sim/counters/counter_model.h"
#include "sim/machine/work.h"

namespace sim {

class Sampler {
 public:
  explicit Sampler(const Chip& chip) : x_chip(chip) {}

  // CUPTI's functions of these names.
  CUptiResult data_size(CUpti_PmSampling_GetCounterDataSize_Params& p);
  CUptiResult initialize_data(CUpti_PmSampling_CounterDataImage_Initialize_Params& p);
  CUptiResult configure(const CUpti_PmSampling_SetConfig_Params& p);
  CUptiResult start();
  CUptiResult stop();
  CUptiResult decode(CUpti_PmSampling_DecodeData_Params& p);
  // Before the object goes: as a stop.
  void shut_down();

  // One that was placed on the device; it counts if the sampler is configured.
  void add_kernel(const Work& work);

 private:
  struct Kernel {
    uint64_t start, end;
    std::vector<double> sums;  // as the configuration's entries
  };

  // All below: x_mutex is held.
  void sample_until(uint64_t now);
  std::vector<double> values_of(uint64_t start, uint64_t end) const;
  void forget_kernels();
  void fold_unsampled(uint64_t now);

  std::mutex x_mutex;  // guards all
  const Chip& x_chip;
  std::vector<RawId> x_data_ids;
  size_t x_data_rows = 0;

  bool x_configured = false, x_started = false;
  CounterConfig x_config;
  uint64_t x_interval = 0;
  size_t x_capacity = 0;  // samples that the hardware buffer holds
  bool x_keep_latest = false;

  uint64_t x_next = 0;            // start of the sample being taken
  std::deque<uint64_t> x_buffer;  // starts of the samples taken and not decoded
  uint32_t x_tail = 0;            // records after them that begin and end at x_next
  bool x_was_full = false;  // the last decode found no room: the next one begins with a slot without times
  bool x_overflow = false;
  bool x_stuck = false;          // after an overflow nothing comes before the next start
  std::deque<Kernel> x_kernels;  // that some sample not yet decoded may overlap

  // The counters run on while nothing is sampled: the first sample after a start has that too.
  std::deque<Kernel> x_unsampled;  // placed since the last stop
  // What the first sample has beyond its own time; as the configuration's entries.
  std::vector<double> x_before;
  uint64_t x_first = 0;  // start of that sample
};

// What a kernel that was placed adds to the samples of its device.
void count_in_samples(const Work& work);

}  // namespace sim
