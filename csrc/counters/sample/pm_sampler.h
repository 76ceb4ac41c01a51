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

#include "base/clock.h"
#include "counters/sample/window_times.h"
#include "counters/strategy/counter_strategy.h"
#include "counters/strategy/range_config.h"

namespace cuptiprof {

class PmSampler final : public CounterStrategy, public LaunchObserver {
 public:
  PmSampler(std::shared_ptr<const Api> api, CounterOptions options);
  ~PmSampler() override;

  void begin() override;
  void pause(Deadline) noexcept override;
  void resume() noexcept override;
  void complete(Deadline) noexcept override;
  bool finish(Deadline) noexcept override;
  LaunchObserver* launch_observer() noexcept override { return this; }

  // Launches are of no interest. cudaProfilerStart and Stop are: the thread of samples follows them.
  bool looks_at_launches() const noexcept override { return false; }
  bool wants(const char*) noexcept override { return false; }
  bool entered(const LaunchEvent&) noexcept override { return false; }
  void left(const LaunchEvent&) noexcept override {}
  void window(bool open) noexcept override {
    x_window_times.changes(now_ns(), open);
    x_window.store(open);
    x_wake.notify_all();
  }

 private:
  struct Device {
    uint32_t ordinal = 0;
    CUpti_PmSampling_Object* object = nullptr;
    std::vector<uint8_t> image;
    bool started = false;
    bool drop_first = true;  // the first sample after a start also covers what was before it
    bool given_up = false;   // CUPTI refused it
    bool ring = false;       // its buffer keeps the latest samples, not the oldest
    uint32_t failures = 0;
    int64_t last_end = 0;      // of the sample before; 0: none
    int64_t to_run_clock = 0;  // run clock - the samples' clock
  };
  void open(Device& device);
  void close(Device& device) noexcept;
  void add(uint32_t ordinal);
  std::vector<uint32_t> devices_in_use() const;
  void look_for_devices() noexcept;
  void apply() noexcept;
  CUptiResult clear_image(Device& device) noexcept;
  bool start(Device& device) noexcept;
  void stop(Device& device) noexcept;
  void halt(Device& device) noexcept;
  void restart(Device& device) noexcept;
  void drain(Device& device) noexcept;
  bool decode(Device& device) noexcept;
  void add_sample(Device& device, size_t index) noexcept;
  void run();

  const MetricHost x_host;
  const RangeConfig x_config;
  std::mutex x_mutex;  // guards the devices: one thread decodes at a time
  std::condition_variable x_wake;
  bool x_stopping = false;
  bool x_on = true;
  std::atomic<bool> x_window;  // between cudaProfilerStart and Stop, where those are asked for
  WindowTimes x_window_times;
  std::vector<Device> x_devices;
  std::vector<double> x_values;
  std::thread x_thread;
};

}  // namespace cuptiprof
