// CUPTI's range profiler on one context: enabled as long as this object lives.
//
// Methods that run in launch callbacks return CUPTI's code instead of throwing.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "counters/range/decoded_ranges.h"
#include "counters/strategy/range_config.h"
#include "cupti/api.h"

namespace cuptiprof {

enum class RangeMode {
  kKernelReplay,  // every kernel between start and stop is a range, run once per pass
  kAutoRange,     // every kernel between start and stop is a range, run once
  kUserRange,     // a range lies between push and pop; whoever pushes repeats the work for further passes
};

class RangeProfiler {
 public:
  // Null and the code when CUPTI refuses. `resets_caches`: before each pass (CUDA 13.4).
  static std::unique_ptr<RangeProfiler> enable(const Api& api, CUcontext context, CUptiResult* result,
                                               bool resets_caches = false) noexcept;
  ~RangeProfiler();
  RangeProfiler(const RangeProfiler&) = delete;
  RangeProfiler& operator=(const RangeProfiler&) = delete;

  // Room in `into` for `max_ranges` ranges of a configuration, or for as many as CUPTI allows; what the image
  // held before is gone. `config` must stay alive.
  CUptiResult configure(const RangeConfig& config, RangeMode mode, size_t max_ranges,
                        std::shared_ptr<DecodedRanges> into, uint16_t levels = 1) noexcept;
  [[nodiscard]] size_t room() const noexcept { return x_room; }
  // No ranges in the image any more.
  CUptiResult clear() noexcept { return initialize(x_into->image); }
  // The configuration is used up: configure() comes next.
  void forget() noexcept { x_config = nullptr; }
  CUptiResult start() noexcept;
  // `all_passes`: every pass of the configuration was submitted.
  CUptiResult stop(bool* all_passes = nullptr) noexcept;
  CUptiResult push(const char* name) noexcept;
  CUptiResult pop() noexcept;
  // Counters of the finished ranges into the image.
  CUptiResult decode(size_t* dropped) noexcept;

  [[nodiscard]] const RangeConfig* config() const noexcept { return x_config; }
  [[nodiscard]] bool started() const noexcept { return x_started; }
  [[nodiscard]] size_t ranges() const noexcept { return x_into ? ranges_in(x_api, x_into->image) : 0; }

 private:
  RangeProfiler(const Api& api, CUpti_RangeProfiler_Object* object) : x_api(api), x_object(object) {}

  CUptiResult set_config(const RangeConfig& config, RangeMode mode, size_t max_ranges,
                         std::shared_ptr<DecodedRanges> into, uint16_t levels);
  CUptiResult initialize(std::vector<uint8_t>& image) noexcept;

  const Api& x_api;
  CUpti_RangeProfiler_Object* x_object;
  size_t x_room = 0;  // ranges
  const RangeConfig* x_config = nullptr;
  std::shared_ptr<DecodedRanges> x_into;  // CUPTI keeps the address of its image
  std::vector<uint8_t> x_replaced;        // an image of which it may have the address yet
  bool x_started = false;
};

}  // namespace cuptiprof
