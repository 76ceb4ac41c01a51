#include "base/stamp_clock.h"

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "doctest/doctest.h"

namespace cuptiprof {
namespace {

void wait_us(long us) {
  const timespec pause{0, us * 1000};
  nanosleep(&pause, nullptr);
}

// A stamp and the run clock's times before and after it.
struct Bracketed {
  int64_t before, stamp, after;
};
Bracketed bracketed() {
  Bracketed b;
  b.before = now_ns();
  b.stamp = read_stamp();
  b.after = now_ns();
  return b;
}
int64_t outside(const Bracketed& b, int64_t time) {
  return std::max({b.before - time, time - b.after, int64_t{0}});
}

constexpr int64_t kClose = 2'000;  // ns; what a machine that does other things meanwhile can add to a reading

}  // namespace

TEST_CASE("stamps are times of the run clock, between looks and beyond the last one") {
  StampClock clock;
  for (const long pause : {50L, 500L, 15'000L, 3'000L, 25'000L}) {
    std::vector<Bracketed> of;
    for (int i = 0; i < 20; ++i) {
      of.push_back(bracketed());
      wait_us(pause / 20);
    }
    clock.look();
    for (int i = 0; i < 5; ++i) of.push_back(bracketed());
    // Preempted inside the bracket it says little; no bracket can be missed by much.
    for (const Bracketed& b : of) CHECK(outside(b, clock.run_clock(b.stamp)) <= kClose);
  }
}

TEST_CASE("what a thread does one after the other has stamps in order, and is past at the next look") {
  StampClock clock;
  int64_t last = read_stamp();
  for (int i = 0; i < 100'000; ++i) {
    const int64_t stamp = read_stamp();
    REQUIRE(stamp >= last);
    last = stamp;
  }
  wait_us(1);
  CHECK(clock.look() >= last);
  CHECK(clock.is_past(last));
  wait_us(1);
  CHECK_FALSE(clock.is_past(read_stamp()));
}

TEST_CASE("with another source of time stamps are its times, and what came before does not wait for ever") {
  static int64_t virtual_time = 1'000;
  StampClock clock;
  const int64_t before = read_stamp();
  set_clock_source([] { return virtual_time; });
  CHECK(read_stamp() == 1'000);
  virtual_time = 2'000;
  CHECK(clock.look() == 2'000);
  CHECK(clock.run_clock(1'500) == 1'500);
  CHECK(clock.is_past(2'000));
  CHECK_FALSE(clock.is_past(2'001));
  if (before & kCycles) {
    CHECK(clock.is_past(before));
    CHECK(clock.run_clock(before) == 2'000);
  }
  set_clock_source(nullptr);
  const Bracketed b = bracketed();
  const int64_t now = clock.look();
  CHECK((now & kCycles) == (before & kCycles));
  CHECK(outside(b, clock.run_clock(b.stamp)) <= kClose);
}

}  // namespace cuptiprof
