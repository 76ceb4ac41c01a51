// Wakes the decoder thread: a buffer came back, a ring fills, a caller waits for it. One a process, as the
// rings are.
#pragma once
#include <semaphore.h>

namespace cuptiprof {

class DecoderBell {
 public:
  DecoderBell() noexcept { sem_init(&x_rung, 0, 0); }
  DecoderBell(const DecoderBell&) = delete;
  DecoderBell& operator=(const DecoderBell&) = delete;

  // Any thread, CUPTI's too; async-signal-safe, never blocks.
  void ring() noexcept { sem_post(&x_rung); }
  // Decoder thread: sleeps until ring() or the time limit.
  void wait(int milliseconds) noexcept;

 private:
  sem_t x_rung;  // never destroyed: threads may ring after static destructors
};

inline DecoderBell g_decoder_bell;

}  // namespace cuptiprof
