// Equal activity buffers in one mapping: an address alone tells whether a buffer is ours, and which one.
//
// Not thread-safe: the pool guards it. Nothing but the constructor allocates.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cuptiprof {

class BufferArena {
 public:
  // touch: the memory is there at once, else when it is first written. Throws std::bad_alloc.
  BufferArena(size_t bytes, size_t count, bool touch);
  ~BufferArena();
  BufferArena(const BufferArena&) = delete;
  BufferArena& operator=(const BufferArena&) = delete;

  // A free buffer, from now on CUPTI's, under the number of its request; null: all are in use.
  uint8_t* lend(uint64_t request) noexcept;
  // CUPTI gave it back. False: not one of ours, or not one that CUPTI had. request: of lend().
  bool take_back(const uint8_t* data, uint64_t* request) noexcept;
  // It may be lent again.
  void free(uint8_t* data) noexcept;

  bool owns(const uint8_t* data) const noexcept { return data >= x_base && data < x_base + x_mapped; }
  // With CUPTI, lent for one of these requests; `to` is the first not meant.
  size_t lent_between(uint64_t from, uint64_t to) const noexcept;
  size_t free_count() const noexcept { return x_free.size(); }
  size_t count() const noexcept { return x_slots.size(); }
  size_t buffer_bytes() const noexcept { return x_bytes; }
  // Gives the memory of free buffers back to the kernel; they read as 0 when next used.
  void forget_free_memory() noexcept;

 private:
  struct Slot {
    uint64_t request = 0;
    bool lent = false;
  };
  const size_t x_bytes;
  const size_t x_stride;  // whole cache lines
  size_t x_mapped = 0;
  uint8_t* x_base = nullptr;
  std::vector<Slot> x_slots;
  std::vector<uint32_t> x_free;  // capacity reserved for all
};

}  // namespace cuptiprof
