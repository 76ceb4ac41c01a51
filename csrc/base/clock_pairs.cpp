#include "base/clock_pairs.h"

#include "base/clock.h"

namespace cuptiprof {
namespace {

constexpr int64_t kEveryNs = 5'000'000'000;
constexpr size_t kMostPairs = 1024;
constexpr int kReadings = 16;

// The best of some readings: the run clock before and after Unix time.
ClockPairs::Pair reading() {
  ClockPairs::Pair best;
  int64_t shortest = INT64_MAX;
  for (int i = 0; i < kReadings; ++i) {
    const int64_t before = now_ns(), unix = unix_ns(), after = now_ns();
    if (after - before >= shortest) continue;
    shortest = after - before;
    best = {before + shortest / 2, unix};
  }
  return best;
}

}  // namespace

ClockPairs::ClockPairs() {
  x_pairs.reserve(kMostPairs);
  restart();
}

void ClockPairs::restart() {
  const std::lock_guard lock(x_mutex);
  x_every = kEveryNs;
  x_pairs.clear();
  add_locked();
}

void ClockPairs::look() {
  const std::lock_guard lock(x_mutex);
  if (now_ns() - x_pairs.back().run >= x_every) add_locked();
}

void ClockPairs::add() {
  const std::lock_guard lock(x_mutex);
  add_locked();
}

void ClockPairs::add_locked() {
  if (x_pairs.size() == kMostPairs) {
    for (size_t i = 0; i < kMostPairs / 2; ++i) x_pairs[i] = x_pairs[2 * i];
    x_pairs.resize(kMostPairs / 2);
    x_every *= 2;
  }
  x_pairs.push_back(reading());
}

std::vector<ClockPairs::Pair> ClockPairs::all() const {
  const std::lock_guard lock(x_mutex);
  return x_pairs;
}

}  // namespace cuptiprof
