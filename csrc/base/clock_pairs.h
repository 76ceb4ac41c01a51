// Readings of the run clock beside Unix time, which may be slewed or set while a session runs.
#pragma once
#include <cstdint>
#include <mutex>
#include <vector>

namespace cuptiprof {

// Bounded, for a session may go on for weeks: when there are too many, every second one goes, and from then
// on they come half as often.
class ClockPairs {
 public:
  struct Pair {
    int64_t run = 0, unix = 0;  // ns
  };

  ClockPairs();
  // From here on.
  void restart();
  // As often as one likes: a reading, if the last one is a few seconds old.
  void look();
  void add();
  [[nodiscard]] std::vector<Pair> all() const;

 private:
  void add_locked();

  mutable std::mutex x_mutex;  // guards all
  int64_t x_every;
  std::vector<Pair> x_pairs;
};

}  // namespace cuptiprof
