// Activity buffers: a fixed set, touched once, owned by the process.
//
// CUPTI may keep a buffer after a session ended, so buffers are never freed while it holds one, and what
// comes back late belongs to the session that gave it out, not to the one that runs. When none is free CUPTI
// still gets a buffer, a discard buffer: NULL can crash it (before API version 27), and the records in a
// discard buffer can be counted, so that the loss is known exactly. Other clients of CUPTI have buffers of
// their own, which can come to us: they are known by their address and left alone.
#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "collect/buffers/buffer_arena.h"

namespace cuptiprof {

struct CompletedBuffer {
  uint8_t* data;
  size_t valid_bytes;
  bool earlier;  // given out by an earlier session
};

// Whose buffer came back.
enum class Returned : uint8_t {
  kToDecoder,
  kDiscard,         // the caller counts its records and gives it back with release()
  kEarlierDiscard,  // the same, of an earlier session
  kForeign          // not ours, or not one that CUPTI had
};

class BufferPool {
 public:
  // Begins a session: makes `count` buffers of `bytes` each available. Buffers that CUPTI still holds stay
  // valid. Nothing completed may be left (take_completed). Throws Error when the memory cannot be had.
  void configure(size_t bytes, size_t count);

  // CUPTI's request callback. Never fails: at worst a discard buffer.
  uint8_t* acquire(size_t* bytes) noexcept;
  // CUPTI's completion callback: a buffer of ours goes to the decoder.
  Returned complete(uint8_t* data, size_t valid_bytes) noexcept;
  // Back to those that are free, cleared as CUPTI wants them
  // (CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER).
  void release(uint8_t* data, size_t valid_bytes) noexcept;

  // Decoder: takes completed buffers, oldest first; at most `max`. Returns how many.
  size_t take_completed(CompletedBuffer* out, size_t max) noexcept;

  // Waits until the decoder gave back every buffer completed before the call. False: it took too long.
  bool wait_for_decoder(std::chrono::milliseconds patience) noexcept;
  // Somebody is in wait_for_decoder().
  bool is_waited_for() const noexcept { return x_waiting.load() != 0; }

  // How many buffers there are, those of earlier sessions too.
  size_t buffers() noexcept;
  // Few buffers are free: CUPTI should be asked for those it can give back.
  bool is_low() const noexcept { return x_low.load(std::memory_order_relaxed); }
  // Buffers asked for, ever.
  uint64_t requests() const noexcept { return x_requests.load(); }
  // With CUPTI now, asked for in this session; of them before this request.
  size_t held_by_cupti() noexcept { return held_since_before(UINT64_MAX); }
  size_t held_since_before(uint64_t request) noexcept;

 private:
  std::mutex x_mutex;  // guards what follows; never held over a CUPTI call, nothing allocates under it in
                       // callbacks
  std::unique_ptr<BufferArena> x_buffers;
  std::unique_ptr<BufferArena> x_discard;
  std::vector<std::unique_ptr<BufferArena>> x_retired;  // of earlier sessions; CUPTI holds some of each
  struct Completed {
    uint8_t* data;
    size_t valid_bytes;
    uint64_t request;
  };
  std::vector<Completed> x_completed;  // capacity reserved for every buffer there is
  uint64_t x_session_began = 0;        // number of its first request
  std::atomic<uint64_t> x_requests{0};
  std::atomic<bool> x_low{false};
  std::atomic<uint32_t> x_waiting{0};
  std::atomic<uint64_t> x_completed_ever{0}, x_released_ever{0};  // discard buffers not counted
};

}  // namespace cuptiprof
