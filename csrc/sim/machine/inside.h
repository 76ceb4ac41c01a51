// Who is inside the simulated machine. Resetting it frees contexts, streams and profilers that calls hold, so
// that a reset needs the machine for itself: it waits until everybody has left, and newcomers wait for it.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>

namespace sim {

// A call into the machine, and everything it does there, callbacks of the profiler included. It may nest.
class Inside {
 public:
  Inside() {
    Thread& t = this_thread();
    if (t.depth++ == 0) enter(t);
  }
  ~Inside() {
    Thread& t = this_thread();
    // Nobody can wait for us to leave before `closed` is set; whoever set it looks again and again.
    if (--t.depth == 0) t.inside->store(false, std::memory_order_release);
  }
  Inside(const Inside&) = delete;

 private:
  friend class Alone;
  struct Thread {
    std::atomic<bool>* inside = nullptr;
    uint32_t depth = 0;
    uint64_t machine = 0;  // which one, counted from the first, its contexts and captures are of
    ~Thread();             // its place is for another thread
  };
  static Thread& this_thread() {
    static thread_local Thread thread;
    return thread;
  }
  static void enter(Thread& thread);
};

// The machine for the calling thread alone, if nobody else is in it within `limit`; what this thread calls
// meanwhile passes. A thread that is inside already (in a callback) never is alone.
class Alone {
 public:
  explicit Alone(std::chrono::milliseconds limit);
  ~Alone();
  Alone(const Alone&) = delete;
  explicit operator bool() const { return x_alone; }

 private:
  bool x_alone = false;
};

}  // namespace sim
