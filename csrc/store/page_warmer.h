// A thread that asks Linux for memory ahead of where tables grow, so that the decoder does not wait for pages
// to be found and cleared (that costs more than decoding the rows that go into them). One a decoder, shared
// by its stores; called by whoever appends to or ends a table: the decoder thread, or who destroys a result.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <thread>

namespace cuptiprof {

class PageWarmer {
 public:
  PageWarmer();
  ~PageWarmer();
  PageWarmer(const PageWarmer&) = delete;
  PageWarmer& operator=(const PageWarmer&) = delete;

  // Memory for [at, at + bytes) is wanted soon. `owner` names the table whose it is. Never waits for the
  // memory.
  void want(const void* owner, char* at, size_t bytes);
  // The owner's ranges go away or move: returns when none of them is being worked on. To be called before
  // they do.
  void forget(const void* owner);

 private:
  struct Range {
    const void* owner;
    char* at;
    size_t bytes;
  };
  void loop();

  std::mutex x_mutex;  // guards the members below; not held while Linux works
  std::condition_variable x_changed;
  std::deque<Range> x_wanted;
  const void* x_busy = nullptr;  // owner of the range being worked on
  bool x_stop = false;
  std::thread x_thread;
};

}  // namespace cuptiprof
