// Activity buffers: a fixed set, touched once, owned by the process.
//
// CUPTI may keep a buffer after a session ended, so buffers are never freed while it holds one. When none is
// free CUPTI still gets a buffer, a discard buffer: NULL can crash it (before API version 27), and the
// records in a discard buffer can be counted, so that the loss is known exactly.
#pragma once
#include <semaphore.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace cuptiprof {

struct CompletedBuffer {
  uint8_t* data;
  size_t valid_bytes;
};

class BufferPool {
 public:
  BufferPool();
  ~BufferPool();

  // Makes `count` buffers of `bytes` each available. Keeps what there is when it fits; throws Error when the
  // memory cannot be had.
  void configure(size_t bytes, size_t count);

  // CUPTI's request callback. Never fails: at worst a discard buffer.
  uint8_t* acquire(size_t* bytes) noexcept;
  // CUPTI's completion callback: hands a filled buffer to the decoder. False: it was a discard buffer, the
  // caller counts its records and then gives it back with release().
  bool complete(uint8_t* data, size_t valid_bytes) noexcept;
  // Back to the free list.
  void release(uint8_t* data) noexcept;

  // Decoder: takes all completed buffers, oldest first, into `out` (cleared first).
  void take_completed(std::vector<CompletedBuffer>& out);
  void wake() noexcept { sem_post(&x_wake); }
  // Sleeps until wake() or the time limit.
  void wait(int milliseconds) noexcept;

  // Waits until the decoder gave back every buffer completed before the call. False: it took too long.
  bool wait_for_decoder(std::chrono::milliseconds patience) noexcept;

  size_t held_by_cupti() noexcept;
  size_t bytes() const { return x_buffer_bytes * x_buffers.size(); }
  size_t buffer_bytes() const { return x_buffer_bytes; }

 private:
  bool is_discard(const uint8_t* data) const noexcept;

  std::mutex x_mutex;  // guards the vectors and x_held; never held over a CUPTI call, nothing allocates under
                       // it in callbacks
  std::vector<uint8_t*> x_buffers;  // all, for freeing
  std::vector<uint8_t*> x_free;     // capacity reserved for all
  std::vector<CompletedBuffer> x_completed;
  std::vector<uint8_t*> x_free_discard;
  uint8_t* x_discard = nullptr;
  size_t x_buffer_bytes = 0;
  size_t x_held = 0;
  std::atomic<uint64_t> x_completed_ever{0}, x_released_ever{0};  // discard buffers not counted
  sem_t x_wake;
};

}  // namespace cuptiprof
