// Shapes and types of the inputs of operators: each combination once, as a number, so that one that was seen
// before costs an operator no text and no lock.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cuptiprof {

enum class InputKind : uint8_t { kOther, kTensor, kScalar, kScalarList, kTensorList };

// An input as it is kept: this word, and for a tensor its sizes (`count` of them), for a list of tensors the
// tensors. `type`: torch's ScalarType.
constexpr uint64_t input_word(InputKind kind, uint16_t type = 0, uint32_t count = 0) {
  return uint64_t{static_cast<uint8_t>(kind)} << 56 | uint64_t{type} << 32 | count;
}

// The number of these inputs, from 1; 0: there is no room for more. At first sight it locks and allocates.
uint32_t operator_inputs_id(std::span<const uint64_t> inputs) noexcept;

// As c10's TypeMeta calls this ScalarType; empty: unknown, as of undefined tensors.
std::string_view element_type_name(uint16_t type) noexcept;

// JSON, as torch.profiler's traces have them: "[[8, 16], [], [[2, 3], [2, 3]]]" and "[\"float\", \"Scalar\",
// \"TensorList\"]".
struct InputTexts {
  std::string shapes, types;
};
InputTexts operator_inputs(uint32_t id);

// Before a session, while nobody needs what earlier ones left.
void forget_operator_inputs();

}  // namespace cuptiprof
