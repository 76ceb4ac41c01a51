// Chips by name, from public data sheets: what a device record needs.
#include <cstring>

#include "sim/machine/machine.h"

namespace sim {
namespace {

// name, product, compute capability, SMs, kHz, warps and blocks an SM, shared memory an SM, L2, copy engines,
// memory, KB/s
constexpr Chip kChips[] = {
    {"H100", "NVIDIA H100 80GB HBM3 (simulated)", 9, 0, 132, 1980000, 64, 32, 233472, 52428800, 3,
     85520809984ull, 3352320000ull},
    {"H200", "NVIDIA H200 (simulated)", 9, 0, 132, 1980000, 64, 32, 233472, 62914560, 3, 150754820096ull,
     4814880000ull},
    {"A100", "NVIDIA A100-SXM4-80GB (simulated)", 8, 0, 108, 1410000, 64, 32, 167936, 41943040, 3,
     85198045184ull, 2039000000ull},
    {"V100", "Tesla V100-SXM2-32GB (simulated)", 7, 0, 80, 1530000, 64, 32, 98304, 6291456, 5, 34079637504ull,
     898048000ull},
    {"L4", "NVIDIA L4 (simulated)", 8, 9, 58, 2040000, 48, 24, 102400, 50331648, 2, 23580639232ull,
     300096000ull},
    {"B200", "NVIDIA B200 (simulated)", 10, 0, 148, 1965000, 64, 32, 233472, 132120576, 4, 191503138816ull,
     7700000000ull},
};

}  // namespace

const Chip* chip_named(const char* name) {
  if (!name || !*name) return &kChips[0];
  for (const Chip& c : kChips)
    if (std::strcmp(c.name, name) == 0) return &c;
  return nullptr;
}

}  // namespace sim
