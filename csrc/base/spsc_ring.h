// A single-producer single-consumer ring over memory that somebody else owns.
// Producer and consumer each have a cache line of their own with all they need, so that neither line moves
// between cores until the ring is nearly full or empty. The producer's comes last and has room left: what
// follows the ring in an object can share it.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace cuptiprof {

inline constexpr size_t kCacheLine = 64;

template <typename T>
class SpscRing {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  SpscRing() = default;
  SpscRing(const SpscRing&) = delete;
  SpscRing& operator=(const SpscRing&) = delete;

  // capacity: a power of two. Not thread-safe: call before either side starts.
  void attach(T* storage, uint32_t capacity) noexcept {
    x_storage = x_consumer_storage = storage;
    x_mask = x_consumer_mask = capacity - 1;
  }

  // Producer. Fails when fewer than `reserve` + 1 slots are free, so that a caller can keep room for what
  // must not fail.
  [[gnu::always_inline]] bool push(const T& value, uint32_t reserve = 0) noexcept {
    const uint64_t head = x_head.load(std::memory_order_relaxed);
    if (head - x_seen_tail + reserve > x_mask) [[unlikely]] {
      x_seen_tail = x_tail.load(std::memory_order_acquire);
      if (head - x_seen_tail + reserve > x_mask) return false;
    }
    x_storage[head & x_mask] = value;
    x_head.store(head + 1, std::memory_order_release);
    // The consumer read this memory last; it comes back while the producer does something else.
    __builtin_prefetch(&x_storage[(head + kAhead) & x_mask], 1);
    return true;
  }

  // Producer: how many were pushed, ever.
  uint64_t pushed() const noexcept { return x_head.load(std::memory_order_relaxed); }

  // Consumer: how many were taken out, ever.
  uint64_t popped() const noexcept { return x_tail.load(std::memory_order_relaxed); }

  // Consumer. Calls visit(const T&) for everything there was at the time of the call; returns how many.
  template <typename Visit>
  size_t drain(Visit&& visit) {
    const uint64_t tail = x_tail.load(std::memory_order_relaxed);
    const uint64_t head = x_head.load(std::memory_order_acquire);
    for (uint64_t i = tail; i != head; ++i) visit(x_consumer_storage[i & x_consumer_mask]);
    x_tail.store(head, std::memory_order_release);
    return static_cast<size_t>(head - tail);
  }

  bool empty() const noexcept {
    return x_head.load(std::memory_order_acquire) == x_tail.load(std::memory_order_acquire);
  }

 private:
  static constexpr size_t kAhead = 4 * kCacheLine / sizeof(T);

  alignas(kCacheLine) std::atomic<uint64_t> x_tail{0};
  T* x_consumer_storage = nullptr;
  uint32_t x_consumer_mask = 0;
  alignas(kCacheLine) std::atomic<uint64_t> x_head{0};
  uint64_t x_seen_tail = 0;  // producer's copy
  T* x_storage = nullptr;
  uint32_t x_mask = 0;
};

}  // namespace cuptiprof
