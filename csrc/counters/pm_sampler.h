// Counters of whole devices over time: strategy sample. The GPU writes a record at every interval into a
// buffer; a thread of ours decodes it. No kernel is serialised or replayed, and all processes on the device
// count.
#pragma once
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "counters/counter_strategy.h"
#include "counters/range_profiler.h"

namespace cuptiprof {

class PmSampler final : public CounterStrategy {
 public:
  PmSampler(std::shared_ptr<const Api> api, CounterOptions options);
  ~PmSampler() override;

  void begin() override;
  void pause() noexcept override;
  void resume() noexcept override;
  void complete() noexcept override;
  void finish() noexcept override;

 private:
  struct Device {
    uint32_t ordinal = 0;
    CUpti_PmSampling_Object* object = nullptr;
    std::vector<uint8_t> image;
    bool started = false;
    bool drop_first = true;    // the first sample after a start also covers what was before it
    int64_t to_run_clock = 0;  // run clock - the samples' clock
  };
  void open(Device& device);
  CUptiResult clear_image(Device& device) noexcept;
  bool start(Device& device) noexcept;
  void stop(Device& device) noexcept;
  void drain(Device& device) noexcept;
  bool decode(Device& device) noexcept;
  void add_sample(Device& device, size_t index) noexcept;
  void run();

  const MetricHost x_host;
  const RangeConfig x_config;
  std::mutex x_mutex;  // guards the devices: one thread decodes at a time
  std::condition_variable x_wake;
  bool x_stopping = false;
  std::vector<Device> x_devices;
  std::vector<double> x_values;
  std::thread x_thread;
};

}  // namespace cuptiprof
