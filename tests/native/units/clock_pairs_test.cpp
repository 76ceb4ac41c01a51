#include "base/clock_pairs.h"

#include <algorithm>

#include "base/clock.h"
#include "doctest/doctest.h"

namespace cuptiprof {
namespace {

std::atomic<int64_t> g_test_ns{0};

struct TestClock {
  TestClock() {
    g_clock_source.store([]() -> int64_t { return g_test_ns; });
  }
  ~TestClock() { g_clock_source.store(nullptr); }
};

constexpr int64_t kSecond = 1'000'000'000;

TEST_CASE("clock pairs: one at the start, one every few seconds, and when asked") {
  const TestClock clock;
  g_test_ns = 7 * kSecond;
  ClockPairs pairs;
  for (int i = 0; i < 20; ++i) {
    g_test_ns += kSecond;
    pairs.look();
  }
  pairs.add();
  const int64_t unix = unix_ns();
  const auto all = pairs.all();
  REQUIRE(all.size() == 6);
  for (size_t i = 0; i < 5; ++i) CHECK(all[i].run == static_cast<int64_t>(7 + 5 * i) * kSecond);
  CHECK(all[5].run == 27 * kSecond);
  for (const auto& pair : all) CHECK((pair.unix <= unix && pair.unix > unix - 100 * kSecond));
  pairs.restart();
  CHECK(pairs.all().size() == 1);
}

TEST_CASE("clock pairs: weeks are bounded, and the whole of them is there") {
  const TestClock clock;
  g_test_ns = 0;
  ClockPairs pairs;
  for (int i = 0; i < 100'000; ++i) {
    g_test_ns += 5 * kSecond;
    pairs.look();
  }
  const auto all = pairs.all();
  CHECK((all.size() >= 500 && all.size() <= 1024));
  CHECK(all.front().run == 0);
  int64_t widest = g_test_ns - all.back().run;
  for (size_t i = 1; i < all.size(); ++i) widest = std::max(widest, all[i].run - all[i - 1].run);
  CHECK(widest <= 5 * kSecond * 256);
}

}  // namespace
}  // namespace cuptiprof
