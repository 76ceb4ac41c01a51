// Hardware units of the simulated chips: how many there are, how fast they run, what one can do in a cycle.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sim/machine/machine.h"

namespace sim {

// Chips as CUPTI tells them apart, in the order of the bits in counter_names.def.
enum CuptiChip : uint32_t { kGv100, kGa100, kAd104, kGh100, kGb100, kNumCuptiChips };
constexpr const char* kCuptiChips[kNumCuptiChips] = {"GV100", "GA100", "AD104", "GH100", "GB100"};
// What counts: the range profiler or PM sampling. They have different metrics, and different limits.
enum class Profiler : uint8_t { kRange, kSampling };
// Index of a chip by CUPTI's name; -1: not modelled.
int cupti_chip_named(std::string_view name);
// Of the product that the simulated machine has (H100 and H200 are both GH100).
uint32_t cupti_chip_of(const Chip& product);

enum class Unit : uint8_t { kSm, kSmsp, kL1tex, kLts, kDram, kGpc, kTpc, kGpu, kSys, kLink, kOther };
constexpr size_t kUnits = static_cast<size_t>(Unit::kOther) + 1;
Unit unit_named(std::string_view name);

// Number of instances of a unit on the whole GPU.
double instances(Unit unit, const Chip& chip);
// Cycles per nanosecond.
double clock_of(Unit unit, const Chip& chip);

// What one instance can add to a counter of this dimension (CUPTI's word) in one of its cycles.
double peak_per_cycle(Unit unit, std::string_view dimension, std::string_view name, const Chip& chip);

constexpr uint64_t text_hash(std::string_view text) {  // FNV-1a
  uint64_t h = 0xcbf29ce484222325ull;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return h;
}

}  // namespace sim
