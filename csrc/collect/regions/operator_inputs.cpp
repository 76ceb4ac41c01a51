#include "collect/regions/operator_inputs.h"

#include <atomic>
#include <iterator>
#include <memory>
#include <mutex>
#include <vector>

namespace cuptiprof {
namespace {

constexpr uint32_t kInputSlots = 1u << 16, kInputProbes = 32, kMaxInputs = kInputSlots / 2;
constexpr size_t kMaxInputWords = 1u << 20;  // of all: 8 MB

struct InputSlot {
  std::atomic<uint64_t> hash{0};  // 0: free
  std::atomic<uint32_t> id{0};
};

struct KnownInputs {
  std::vector<std::vector<uint64_t>> all;  // by number - 1
  size_t words = 0;
};

InputSlot g_inputs[kInputSlots];
std::mutex g_inputs_mutex;  // guards adding to g_inputs, and known_inputs()
KnownInputs& known_inputs() {
  static auto* known = new KnownInputs;  // never destroyed: threads may outlive static destructors
  return *known;
}

uint64_t hash_of_inputs(std::span<const uint64_t> words) noexcept {
  uint64_t h = 0x9e3779b97f4a7c15ull + words.size();
  for (const uint64_t w : words) {
    h = (h ^ w) * 0xff51afd7ed558ccdull;
    h ^= h >> 32;
  }
  return h ? h : 1;
}

// The slot of this hash, or the free one where it would be; null: the neighbourhood is full.
InputSlot* slot_of_inputs(uint64_t hash) noexcept {
  for (uint32_t i = 0; i < kInputProbes; ++i) {
    InputSlot& slot = g_inputs[(hash + i) % kInputSlots];
    const uint64_t seen = slot.hash.load(std::memory_order_acquire);
    if (seen == hash || seen == 0) return &slot;
  }
  return nullptr;
}

constexpr std::string_view kTypeNames[] = {"unsigned char",
                                           "signed char",
                                           "short int",
                                           "int",
                                           "long int",
                                           "c10::Half",
                                           "float",
                                           "double",
                                           "c10::complex<c10::Half>",
                                           "c10::complex<float>",
                                           "c10::complex<double>",
                                           "bool",
                                           "c10::qint8",
                                           "c10::quint8",
                                           "c10::qint32",
                                           "c10::BFloat16",
                                           "c10::quint4x2",
                                           "c10::quint2x4",
                                           "c10::bits1x8",
                                           "c10::bits2x4",
                                           "c10::bits4x2",
                                           "c10::bits8",
                                           "c10::bits16",
                                           "c10::Float8_e5m2",
                                           "c10::Float8_e4m3fn",
                                           "c10::Float8_e5m2fnuz",
                                           "c10::Float8_e4m3fnuz",
                                           "short unsigned int",
                                           "unsigned int",
                                           "long unsigned int"};

class InputWriter {
 public:
  explicit InputWriter(const std::vector<uint64_t>& words) : x_words(words) {}

  InputTexts write() {
    while (x_at < x_words.size()) {
      const char* separator = x_at == 0 ? "" : ", ";
      x_out.shapes += separator;
      x_out.types += separator;
      input();
    }
    return {"[" + x_out.shapes + "]", "[" + x_out.types + "]"};
  }

 private:
  void input() {
    const uint64_t word = x_words[x_at++];
    const auto count = static_cast<uint32_t>(word);
    switch (static_cast<InputKind>(word >> 56)) {
      case InputKind::kTensor: {
        const auto type = static_cast<uint16_t>(word >> 32);
        const bool is_known = type < std::size(kTypeNames);
        sizes(count, is_known);
        return type_is(element_type_name(type));
      }
      case InputKind::kTensorList:
        x_out.shapes += '[';
        for (uint32_t i = 0; i < count && x_at < x_words.size(); ++i) {
          if (i != 0) x_out.shapes += ", ";
          sizes(static_cast<uint32_t>(x_words[x_at++]), true);
        }
        x_out.shapes += ']';
        return type_is("TensorList");
      case InputKind::kScalar:
        x_out.shapes += "[]";
        return type_is("Scalar");
      case InputKind::kScalarList:
        x_out.shapes += "[]";
        return type_is("ScalarList");
      case InputKind::kOther:
        break;
    }
    x_out.shapes += "[]";
    type_is("");
  }
  void sizes(uint32_t count, bool shown) {
    x_out.shapes += '[';
    for (uint32_t i = 0; i < count && x_at < x_words.size(); ++i, ++x_at) {
      if (!shown) continue;
      if (i != 0) x_out.shapes += ", ";
      x_out.shapes += std::to_string(static_cast<int64_t>(x_words[x_at]));
    }
    x_out.shapes += ']';
  }
  void type_is(std::string_view name) { x_out.types.append("\"").append(name).append("\""); }

  const std::vector<uint64_t>& x_words;
  size_t x_at = 0;
  InputTexts x_out;
};

}  // namespace

std::string_view element_type_name(uint16_t type) noexcept {
  return type < std::size(kTypeNames) ? kTypeNames[type] : std::string_view();
}

uint32_t operator_inputs_id(std::span<const uint64_t> inputs) noexcept try {
  const uint64_t hash = hash_of_inputs(inputs);
  InputSlot* slot = slot_of_inputs(hash);
  if (!slot) return 0;
  if (slot->hash.load(std::memory_order_acquire) == hash) return slot->id.load(std::memory_order_acquire);
  const std::lock_guard lock(g_inputs_mutex);
  slot = slot_of_inputs(hash);
  if (!slot) return 0;
  if (slot->hash.load(std::memory_order_acquire) == hash) return slot->id.load(std::memory_order_acquire);
  KnownInputs& known = known_inputs();
  if (known.all.size() == kMaxInputs || known.words + inputs.size() > kMaxInputWords) return 0;
  known.all.emplace_back(inputs.begin(), inputs.end());
  known.words += inputs.size();
  slot->id.store(static_cast<uint32_t>(known.all.size()), std::memory_order_release);
  slot->hash.store(hash, std::memory_order_release);
  return slot->id.load(std::memory_order_relaxed);
} catch (...) {
  return 0;  // no memory
}

InputTexts operator_inputs(uint32_t id) {
  const std::lock_guard lock(g_inputs_mutex);
  const KnownInputs& known = known_inputs();
  if (id == 0 || id > known.all.size()) return {};
  return InputWriter(known.all[id - 1]).write();
}

void forget_operator_inputs() {
  const std::lock_guard lock(g_inputs_mutex);
  KnownInputs& known = known_inputs();
  if (known.all.empty()) return;
  known = {};
  for (InputSlot& slot : g_inputs) slot.hash.store(0, std::memory_order_relaxed);
}

}  // namespace cuptiprof
