#include "collect/buffers/decoder_bell.h"

#include <errno.h>
#include <time.h>

namespace cuptiprof {

void DecoderBell::wait(int milliseconds) noexcept {
  timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += milliseconds % 1000 * 1'000'000L;
  until.tv_sec += milliseconds / 1000 + until.tv_nsec / 1'000'000'000L;
  until.tv_nsec %= 1'000'000'000L;
  while (sem_timedwait(&x_rung, &until) != 0 && errno == EINTR) {
  }
  while (sem_trywait(&x_rung) == 0) {  // one look serves all the rings that came meanwhile
  }
}

}  // namespace cuptiprof
