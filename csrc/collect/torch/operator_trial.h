// A trial before the first session with operators: what the program's torch calls us with is kept as it is,
// so that who began it, and knows which operators ran, can say where the fields of a RecordFunction are.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "collect/torch/record_function.h"

namespace cuptiprof::torch {

// Bytes of a RecordFunction that are kept: all of the smallest (torch 2.4, whose strings are the old ones).
inline constexpr uint32_t kTrialBytes = 320;

struct TrialCall {
  std::string name;
  std::string bytes;             // kTrialBytes of it
  std::vector<uint32_t> inputs;  // tags of its inputs, where these were asked for; 8 at most
};

// Operators of the calling thread from here until end_trial(), 64 at most. `inputs`: where a RecordFunction
// has them; 0: they are not asked for.
void begin_trial(const Library& library, uint32_t inputs);
std::vector<TrialCall> end_trial(const Library& library);

}  // namespace cuptiprof::torch
