#include "sim/counters/replay_cost.h"

#include <cmath>
#include <string_view>

namespace sim {

bool communicates(const cuptisim_op& op) {
  const std::string_view name = op.name ? op.name : "";
  return (op.flags & CUPTISIM_COMMUNICATES) || name.find("nccl") != std::string_view::npos ||
         name.find("nvshmem") != std::string_view::npos;
}

double kept_bytes(const KernelCounters& counters) {
  static const RawId written = raw_named("dram__bytes_write");
  return std::floor(counters.value(written));
}

uint64_t copy_time(uint64_t bytes, const Chip& chip) {
  return static_cast<uint64_t>(
      std::ceil(static_cast<double>(bytes) * 1e6 / static_cast<double>(chip.bandwidth_kb)));
}

}  // namespace sim
