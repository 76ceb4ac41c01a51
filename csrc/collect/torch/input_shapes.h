// Shapes and types of an operator's inputs, read where torch keeps them: at::RecordFunction has them as
// c10::IValue, which hold tensors (c10::TensorImpl), numbers and lists.
#pragma once
#include <cstdint>

#include "collect/torch/record_function.h"

namespace cuptiprof::torch {

// Where that is, in bytes, and what IValue's tags say; found by a trial.
struct InputLayout {
  uint32_t inputs = 0;  // of a RecordFunction: pointer to the first IValue, number of them
  uint32_t sizes = 0;   // of a TensorImpl: number of dimensions, then five of them or a pointer to all
  uint32_t type = 0;    // of a TensorImpl: uint16
  uint32_t tensor = 0, list = 0;  // tags
  uint32_t scalars = 0;           // tags of numbers, a bit each

  [[nodiscard]] bool is_known() const { return inputs != 0; }
};

// Their number (operator_inputs_id), from 1; 0: none, or they found no room.
uint32_t inputs_of(const RecordFunction& call, const InputLayout& layout) noexcept;

// Tags of the first inputs, as they are.
uint32_t input_tags(const RecordFunction& call, uint32_t inputs, uint32_t* tags, uint32_t room) noexcept;

}  // namespace cuptiprof::torch
