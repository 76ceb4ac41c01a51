#include "sim/machine/recent_work.h"

namespace sim {

void RecentWork::add(const PlacedKernel& kernel) {
  const std::lock_guard lock(x_mutex);
  x_kernels[x_next++ % kKept] = kernel;
}

std::vector<PlacedKernel> RecentWork::during(uint64_t start, uint64_t end) {
  const std::lock_guard lock(x_mutex);
  std::vector<PlacedKernel> out;
  for (const PlacedKernel& k : x_kernels)
    if (k.start < end && k.end > start) out.push_back(k);
  return out;
}

}  // namespace sim
