// u64 -> u32 for launch callbacks: reads take no lock, entries of an older generation count as absent.
//
// Keys are pointers to kernel names or hashes of region paths. A pointer may be reused after a module was
// unloaded: then the generation changes, and every key is looked up again.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>

namespace cuptiprof {

class VerdictCache {
 public:
  static constexpr uint32_t kNone = 0xffffffff;

  [[nodiscard]] uint32_t find(uint64_t key, uint32_t generation) const noexcept {
    for (uint32_t i = 0, at = slot_of(key); i < kProbes; ++i, at = (at + 1) % kSlots) {
      const uint64_t seen = x_slots[at].key.load(std::memory_order_acquire);
      if (seen == 0) return kNone;
      if (seen != key) continue;
      const uint64_t packed = x_slots[at].value.load(std::memory_order_acquire);
      return packed >> 32 == generation ? static_cast<uint32_t>(packed) : kNone;
    }
    return kNone;
  }

  // One writer at a time. A full neighbourhood is not remembered: its keys are looked up again each time.
  void put(uint64_t key, uint32_t generation, uint32_t value) noexcept {
    const uint64_t packed = uint64_t{generation} << 32 | value;
    for (uint32_t i = 0, at = slot_of(key); i < kProbes; ++i, at = (at + 1) % kSlots) {
      const uint64_t seen = x_slots[at].key.load(std::memory_order_relaxed);
      if (seen != 0 && seen != key) continue;
      x_slots[at].value.store(packed, std::memory_order_release);
      x_slots[at].key.store(key, std::memory_order_release);
      return;
    }
  }

 private:
  static constexpr uint32_t kSlots = 1 << 14, kProbes = 16;
  static uint32_t slot_of(uint64_t key) noexcept {
    return static_cast<uint32_t>(key * 0x9e3779b97f4a7c15ull >> 50);
  }
  struct Slot {
    std::atomic<uint64_t> key{0};  // 0: free
    std::atomic<uint64_t> value{0};
  };
  std::array<Slot, kSlots> x_slots{};
};

}  // namespace cuptiprof
