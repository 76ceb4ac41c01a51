// Records that are only ever added, and found by what is in them. Any thread adds and finds, without a lock
// and without allocating; the memory is the caller's, and zeros are an empty set.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cuptiprof {

template <typename Record>
class AppendSet {
 public:
  // Room for so many records, a power of two.
  static constexpr size_t bytes(uint32_t capacity) {
    return capacity * sizeof(Record) + 2 * capacity * sizeof(std::atomic<uint32_t>);
  }
  void place(void* memory, uint32_t capacity) noexcept {
    x_records = static_cast<Record*>(memory);
    x_index = reinterpret_cast<std::atomic<uint32_t>*>(x_records + capacity);
    x_capacity = capacity;
    x_next.store(1, std::memory_order_relaxed);
  }

  [[nodiscard]] const Record& at(uint32_t id) const noexcept { return x_records[id]; }
  [[nodiscard]] uint32_t size() const noexcept { return x_next.load(std::memory_order_relaxed) - 1; }

  // The ID (from 1) of the record that `is` it; where there is none, of the one that `make(record)` fills.
  // 0: there is no room, or `make` said false. Two threads that add the same at once may leave an unused one.
  template <typename Is, typename Make>
  uint32_t find_or_add(uint64_t hash, Is is, Make make) noexcept {
    const uint32_t mask = 2 * x_capacity - 1;
    uint32_t made = 0;
    for (uint32_t i = 0, at = static_cast<uint32_t>(hash * 0x9e3779b97f4a7c15ull >> 32) & mask; i <= mask;
         ++i, at = (at + 1) & mask) {
      uint32_t id = x_index[at].load(std::memory_order_acquire);
      if (id == 0) {
        if (made == 0) {
          made = x_next.load(std::memory_order_relaxed);
          do {
            if (made >= x_capacity) return 0;
          } while (!x_next.compare_exchange_weak(made, made + 1, std::memory_order_relaxed));
          if (!make(x_records[made])) return 0;
        }
        if (x_index[at].compare_exchange_strong(id, made, std::memory_order_acq_rel)) return made;
      }
      if (is(x_records[id])) return id;
    }
    return 0;
  }

 private:
  Record* x_records = nullptr;
  std::atomic<uint32_t>* x_index = nullptr;  // twice as many as records, so that a gap always comes
  uint32_t x_capacity = 0;
  std::atomic<uint32_t> x_next{1};
};

}  // namespace cuptiprof
