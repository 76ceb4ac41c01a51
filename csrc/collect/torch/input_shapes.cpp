#include "collect/torch/input_shapes.h"

#include <algorithm>

#include "collect/regions/operator_inputs.h"

namespace cuptiprof::torch {
namespace {

constexpr size_t kIValue = 16, kTag = 8;    // bytes; where its tag is
constexpr uint32_t kInline = 5;             // dimensions that a TensorImpl holds itself
constexpr uint32_t kMostDimensions = 64;    // of more it is no tensor as we know it
constexpr uint32_t kMostScalars = 30;       // of a list that torch.profiler calls ScalarList
constexpr size_t kListElements = 16;        // of a c10::detail::ListImpl: begin and end of its IValues
constexpr size_t kMostElements = 1u << 12;  // of a list of tensors that are looked at
constexpr size_t kWords = 512;

template <typename T>
T at(const void* base, size_t offset) noexcept {
  T value;
  std::memcpy(&value, static_cast<const char*>(base) + offset, sizeof value);
  return value;
}

class InputReader {
 public:
  explicit InputReader(const InputLayout& layout) : x_layout(layout) {}

  void read(const char* value) noexcept {
    const auto tag = at<uint32_t>(value, kTag);
    if (tag == x_layout.tensor)
      tensor(at<const void*>(value, 0));
    else if (is_scalar(tag))
      put(input_word(InputKind::kScalar));
    else if (tag == x_layout.list)
      list(at<const void*>(value, 0));
    else
      put(input_word(InputKind::kOther));
  }
  uint32_t id() const noexcept { return x_full ? 0 : operator_inputs_id({x_words, x_used}); }

 private:
  bool is_scalar(uint32_t tag) const noexcept { return tag < 32 && x_layout.scalars >> tag & 1; }
  void put(uint64_t word) noexcept {
    if (x_used == kWords)
      x_full = true;
    else
      x_words[x_used++] = word;
  }
  void tensor(const void* impl) noexcept {
    const uint64_t dimensions = impl ? at<uint64_t>(impl, x_layout.sizes) : kMostDimensions + 1;
    if (dimensions > kMostDimensions) return put(input_word(InputKind::kOther));
    const auto count = static_cast<uint32_t>(dimensions);
    put(input_word(InputKind::kTensor, at<uint16_t>(impl, x_layout.type), count));
    const char* sizes = static_cast<const char*>(impl) + x_layout.sizes + sizeof(uint64_t);
    if (count > kInline) sizes = at<const char*>(sizes, 0);
    for (uint32_t i = 0; i < count; ++i) put(at<uint64_t>(sizes, i * sizeof(uint64_t)));
  }
  void list(const void* impl) noexcept {
    const char* begin = impl ? at<const char*>(impl, kListElements) : nullptr;
    const char* end = impl ? at<const char*>(impl, kListElements + sizeof(void*)) : nullptr;
    const size_t count = begin ? static_cast<size_t>(end - begin) / kIValue : 0;
    const auto all = [&](auto is_such) {
      for (size_t i = 0; i < count; ++i)
        if (!is_such(at<uint32_t>(begin, i * kIValue + kTag))) return false;
      return true;
    };
    if (count <= kMostScalars && all([&](uint32_t tag) { return is_scalar(tag); }))
      return put(input_word(InputKind::kScalarList));
    if (count == 0 || count > kMostElements || !all([&](uint32_t tag) { return tag == x_layout.tensor; }))
      return put(input_word(InputKind::kOther));
    put(input_word(InputKind::kTensorList, 0, static_cast<uint32_t>(count)));
    for (size_t i = 0; i < count; ++i) tensor(at<const void*>(begin, i * kIValue));
  }

  const InputLayout& x_layout;
  bool x_full = false;
  size_t x_used = 0;
  uint64_t x_words[kWords];
};

}  // namespace

uint32_t inputs_of(const RecordFunction& call, const InputLayout& layout) noexcept {
  const auto* first = field<const char*>(call, layout.inputs);
  const auto count = field<size_t>(call, layout.inputs + sizeof(void*));
  InputReader reader(layout);
  for (size_t i = 0; i < (first ? std::min(count, kWords) : 0); ++i) reader.read(first + i * kIValue);
  return reader.id();
}

uint32_t input_tags(const RecordFunction& call, uint32_t inputs, uint32_t* tags, uint32_t room) noexcept {
  const auto* first = field<const char*>(call, inputs);
  const auto count = std::min<size_t>(first ? field<size_t>(call, inputs + sizeof(void*)) : 0, room);
  for (size_t i = 0; i < count; ++i) tags[i] = at<uint32_t>(first, i * kIValue + kTag);
  return static_cast<uint32_t>(count);
}

}  // namespace cuptiprof::torch
