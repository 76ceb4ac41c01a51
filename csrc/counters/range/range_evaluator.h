// Values of decoded ranges, worked out on a thread of its own: evaluation needs neither the GPU nor a context
// ("can be done offline", CUPTI guide), and takes time that the launching thread should not lose. One thread,
// in the order in which ranges were handed over, so that rows keep their order; it is the only one that uses
// the host object.
#pragma once
#include <array>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "counters/range/decoded_ranges.h"
#include "counters/strategy/counter_strategy.h"

namespace cuptiprof {

class RangeEvaluator {
 public:
  // Throws Error: the chip is not known.
  RangeEvaluator(std::shared_ptr<const Api> api, const std::string& chip, CounterRows& rows,
                 CounterEvents& events);
  ~RangeEvaluator();
  RangeEvaluator(const RangeEvaluator&) = delete;
  RangeEvaluator& operator=(const RangeEvaluator&) = delete;

  void start();
  // After what was handed over before.
  void stop() noexcept;

  // Every kept range becomes a row or is counted. Allocates nothing, so that a callback may call it. With too
  // many waiting already these are counted as `behind`.
  void hand_over(std::shared_ptr<DecodedRanges> decoded) noexcept;
  // Until one of them is free to be written to; null: none was in time, and is not waited for again until
  // something was finished.
  template <typename Images>
  std::shared_ptr<DecodedRanges> wait_for_free(const Images& images,
                                               std::chrono::milliseconds patience) noexcept {
    return wait_for_free(images.data(), images.size(), patience);
  }
  // Until all that was handed over is in the rows. False: for `patience` nothing was finished.
  bool drain(std::chrono::milliseconds patience) noexcept;

 private:
  std::shared_ptr<DecodedRanges> wait_for_free(const std::shared_ptr<DecodedRanges>* images, size_t count,
                                               std::chrono::milliseconds patience) noexcept;
  void run() noexcept;
  void evaluate(DecodedRanges& decoded) noexcept;
  size_t index_of(const DecodedRanges& decoded, size_t range) const noexcept;

  static constexpr size_t kMost = 256;  // waiting at a time
  const std::shared_ptr<const Api> x_api;
  const MetricHost x_host;
  CounterRows& x_rows;
  CounterEvents& x_events;
  std::vector<double> x_values;
  std::mutex x_mutex;  // guards what follows; no CUPTI call is made under it
  std::condition_variable x_come, x_done;
  std::array<std::shared_ptr<DecodedRanges>, kMost> x_waiting;
  uint64_t x_handed_over = 0, x_finished = 0;
  uint64_t x_gave_up_at = UINT64_MAX;  // x_finished when somebody waited in vain
  bool x_stopping = false;
  std::thread x_thread;
};

}  // namespace cuptiprof
