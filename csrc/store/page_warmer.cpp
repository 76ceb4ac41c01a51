#include "store/page_warmer.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>

namespace cuptiprof {

PageWarmer::PageWarmer() : x_thread([this] { loop(); }) {}

PageWarmer::~PageWarmer() {
  {
    const std::lock_guard lock(x_mutex);
    x_stop = true;
  }
  x_changed.notify_all();
  x_thread.join();
}

void PageWarmer::want(const void* owner, char* at, size_t bytes) {
  {
    const std::lock_guard lock(x_mutex);
    x_wanted.push_back({owner, at, bytes});
  }
  x_changed.notify_all();
}

void PageWarmer::forget(const void* owner) {
  std::unique_lock lock(x_mutex);
  std::erase_if(x_wanted, [owner](const Range& r) { return r.owner == owner; });
  x_changed.wait(lock, [this, owner] { return x_busy != owner; });
}

void PageWarmer::loop() {
  pthread_setname_np(pthread_self(), "cuptiprof-warm");
  std::unique_lock lock(x_mutex);
  for (;;) {
    x_changed.wait(lock, [this] { return x_stop || !x_wanted.empty(); });
    if (x_stop) return;
    const Range range = x_wanted.front();
    x_wanted.pop_front();
    x_busy = range.owner;
    lock.unlock();
#ifdef MADV_POPULATE_WRITE
    // Linux before 5.14 refuses: pages then come by fault.
    madvise(range.at, range.bytes, MADV_POPULATE_WRITE);
#endif
    lock.lock();
    x_busy = nullptr;
    x_changed.notify_all();
  }
}

}  // namespace cuptiprof
