#include "base/stamp_clock.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cstring>
#include <limits>

namespace cuptiprof {
namespace {

constexpr int64_t kNear = 10'000'000;  // ns: readings nearer than this do not tell the rate anew
constexpr int64_t kLeast = 1'000'000;  // the first time
constexpr int kTries = 5;

// The kernel looked at the counter more closely than a program can: across sockets, in sleep, under
// virtualisation.
bool kernel_counts_cycles() noexcept {
#if defined(__x86_64__)
  const int file =
      open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char name[8] = {};
  const ssize_t length = ::read(file, name, sizeof name - 1);
  close(file);
  return length >= 3 && std::strncmp(name, "tsc", 3) == 0 && (name[3] == '\n' || name[3] == 0);
#else
  return false;
#endif
}

const bool g_cycles_are_trusted = [] {
  const bool trusted = kernel_counts_cycles();
  g_stamps_are_cycles.store(trusted);
  return trusted;
}();

int64_t stamp_in_order() noexcept {
#if defined(__x86_64__)
  _mm_lfence();
  const int64_t stamp = read_stamp();
  _mm_lfence();
  return stamp;
#else
  return read_stamp();
#endif
}

}  // namespace

void set_clock_source(ClockSource source) noexcept {
  if (source) g_stamps_are_cycles.store(false);
  g_clock_source.store(source);
  if (!source) g_stamps_are_cycles.store(g_cycles_are_trusted);
}

// The clock, and the counter before and after it: of some tries the one that took the least.
StampClock::Reading StampClock::read() noexcept {
  Reading best;
  int64_t least = std::numeric_limits<int64_t>::max();
  int64_t before = stamp_in_order();
  for (int i = 0; i < kTries; ++i) {
    const int64_t time = now_ns();
    const int64_t after = stamp_in_order();
    if (!(after & kCycles)) return {after, after};
    if (after - before < least) {
      least = after - before;
      best = {before + least / 2, time};
    }
    before = after;
  }
  return best;
}

// When the library was loaded: by the first session long enough ago.
const StampClock::Reading StampClock::g_first = StampClock::read();

StampClock::StampClock() noexcept : x_now(read()) { go_from(g_first); }

void StampClock::go_from(const Reading& from) noexcept {
  x_from = from;
  while (x_now.stamp & kCycles && x_now.time - x_from.time < kLeast) {
    const timespec pause{0, 100'000};
    nanosleep(&pause, nullptr);
    x_now = read();
  }
  x_to = x_now;
  const int64_t cycles = x_to.stamp - x_from.stamp;
  x_rate = cycles > 0 ? static_cast<double>(x_to.time - x_from.time) / static_cast<double>(cycles) : 0;
}

int64_t StampClock::look() noexcept {
  const Reading last = x_now;
  x_now = read();
  if ((x_now.stamp ^ last.stamp) & kCycles)
    go_from(g_first);
  else if (x_now.time - x_to.time >= kNear)
    go_from(x_to);
  return x_now.stamp;
}

}  // namespace cuptiprof
