// Kernels that a context was given of late: what a range that begins now may find still running.
#pragma once
#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "sim/cuptisim.h"

namespace sim {

// A kernel, when the host launched it and when it runs.
struct PlacedKernel {
  cuptisim_op op;
  uint32_t stream;
  uint64_t launched, start, end;
};

// Threads that launch add, whoever ends a range asks.
class RecentWork {
 public:
  void add(const PlacedKernel& kernel);
  // Those that run in [start, end) at least in part; more than kKept of them on their way are forgotten.
  std::vector<PlacedKernel> during(uint64_t start, uint64_t end);

 private:
  static constexpr size_t kKept = 32;
  std::mutex x_mutex;  // guards the rest
  std::array<PlacedKernel, kKept> x_kernels{};
  size_t x_next = 0;
};

}  // namespace sim
