#include "sim/activity/delivery.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "sim/activity/buffers.h"
#include "sim/activity/clients.h"
#include "sim/activity/record_sizes.h"
#include "sim/machine/faults.h"
#include "sim/machine/inside.h"
#include "sim/machine/machine.h"

namespace sim {
namespace {

std::atomic<CUpti_BuffersCallbackCompleteFunc> g_complete{nullptr};
std::atomic<SharedComplete> g_shared_complete[kClients];
std::atomic<uint32_t> g_outstanding{0};
std::atomic<uint32_t> g_period_ms{0};

template <typename F>
void for_each_record(const Buffer& b, F f) {
  for (size_t at = 0; at < b.used;) {
    auto* r = reinterpret_cast<CUpti_Activity*>(b.data + at);
    const size_t n = stride(r->kind, Machine::get().version());
    if (n == 0 || at + n > b.used) return;
    f(r, n);
    at += n;
  }
}

void shuffle(Buffer& b, uint64_t window) {
  std::vector<std::vector<uint8_t>> records;
  for_each_record(b, [&](CUpti_Activity* r, size_t n) {
    const auto* from = reinterpret_cast<const uint8_t*>(r);
    records.emplace_back(from, from + n);
  });
  std::mt19937_64 random(Machine::get().seed.fetch_add(1));
  for (size_t i = 0; i < records.size(); i += window)
    std::shuffle(records.begin() + static_cast<ptrdiff_t>(i),
                 records.begin() + static_cast<ptrdiff_t>(std::min<size_t>(i + window, records.size())),
                 random);
  size_t at = 0;
  for (const auto& r : records) {
    std::memcpy(b.data + at, r.data(), r.size());
    at += r.size();
  }
}

template <typename Record>
void cut(CUpti_Activity* record, uint64_t now) {
  auto* r = reinterpret_cast<Record*>(record);
  if (r->end <= now) return;
  r->end = 0;
  if (r->start > now) r->start = 0;
}

// Work that still runs is handed over without an end, work that has not begun without a start; neither comes
// again.
void cut_unfinished(const Buffer& b, uint64_t now) {
  for_each_record(b, [now](CUpti_Activity* r, size_t) {
    switch (r->kind) {
      case CUPTI_ACTIVITY_KIND_KERNEL:
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return cut<CUpti_ActivityKernel10>(r, now);
      case CUPTI_ACTIVITY_KIND_MEMCPY:
        return cut<CUpti_ActivityMemcpy6>(r, now);
      case CUPTI_ACTIVITY_KIND_MEMCPY2:
        return cut<CUpti_ActivityMemcpyPtoP4>(r, now);
      case CUPTI_ACTIVITY_KIND_MEMSET:
        return cut<CUpti_ActivityMemset4>(r, now);
      case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
        return cut<CUpti_ActivityGraphTrace2>(r, now);
      default:
        return;
    }
  });
}

class Worker {
 public:
  static Worker& get() {
    static Worker* w = new Worker;  // never destroyed (Machine::get)
    return *w;
  }

  void give(const Buffer& b) {
    const std::lock_guard lock(x_mutex);
    x_full.push_back(b);
    if (!x_running) {
      x_running = true;
      std::thread([this] {
        pthread_setname_np(pthread_self(), "cupti-sim");
        loop();
      }).detach();
    }
    x_changed.notify_all();
  }

  std::deque<Buffer> take(uint64_t now, bool all) {
    std::unique_lock lock(x_mutex);
    x_changed.wait(lock, [this] { return !x_busy; });  // what it delivers now was delivered before we return
    std::deque<Buffer> ready, later;
    for (const Buffer& b : x_full) (all || b.complete_at <= now ? ready : later).push_back(b);
    x_full.swap(later);
    return ready;
  }

  void period_changed() { x_changed.notify_all(); }

 private:
  void loop();
  // Between two looks: until there is something to look at, or the flush period has passed.
  void rest(std::unique_lock<std::mutex>& lock);

  std::mutex x_mutex;  // guards the members
  std::condition_variable x_changed;
  std::deque<Buffer> x_full;
  bool x_running = false;
  bool x_busy = false;
};

void Worker::rest(std::unique_lock<std::mutex>& lock) {
  const uint32_t period = g_period_ms.load();
  if (period != 0) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(period);
    x_changed.wait_until(lock, until, [period] { return g_period_ms.load() != period; });
  } else if (x_full.empty()) {
    x_changed.wait(lock);
  } else {
    x_changed.wait_for(lock, std::chrono::milliseconds(1));  // the GPU finishes without telling us
  }
}

void Worker::loop() {
  std::unique_lock lock(x_mutex);
  for (;; rest(lock)) {
    lock.unlock();
    const Inside inside;  // waits for a reset, which waits for our mutex
    lock.lock();
    for (;;) {
      const uint64_t now = Machine::get().now();
      const auto ready =
          std::find_if(x_full.begin(), x_full.end(), [now](const Buffer& b) { return b.complete_at <= now; });
      if (ready == x_full.end()) break;
      Buffer b = *ready;
      x_full.erase(ready);
      x_busy = true;
      lock.unlock();
      if (const auto slow = fault(CUPTISIM_FAULT_SLOW_WORKER))
        std::this_thread::sleep_for(std::chrono::nanoseconds(slow->a));
      complete_now(b, kAllDone);
      lock.lock();
      x_busy = false;
      x_changed.notify_all();
    }
  }
}

}  // namespace

void set_complete_callback(CUpti_BuffersCallbackCompleteFunc complete) { g_complete = complete; }

void set_complete_callback(uint32_t client, SharedComplete complete) { g_shared_complete[client] = complete; }

void note_requested() { g_outstanding.fetch_add(1); }

uint32_t buffers_outstanding() { return g_outstanding.load(); }

void complete_later(const Buffer& b) { Worker::get().give(b); }

void complete_now(Buffer& b, uint64_t now) {
  if (now != kAllDone && b.complete_at > now) cut_unfinished(b, clock_of(b.client).of(now));
  if (const auto f = fault(CUPTISIM_FAULT_SHUFFLE)) shuffle(b, std::max<uint64_t>(f->a, 2));
  Machine::get().truth.buffers_completed.fetch_add(1);
  g_outstanding.fetch_sub(1);
  if (b.client != 0) {
    size_t info[4] = {sizeof info};  // CUpti_BufferCallbackCompleteInfo: thread, no layouts
    if (const auto complete = g_shared_complete[b.client].load()) complete(b.data, b.size, b.used, info);
    return;
  }
  if (const auto complete = g_complete.load()) complete(nullptr, 0, b.data, b.size, b.used);
}

void complete_pending(uint64_t now, bool all) {
  for (Buffer& b : Worker::get().take(now, all)) complete_now(b, now);
}

void discard_pending() {
  for (Buffer& b : Worker::get().take(0, true)) {
    b.used = 0;
    complete_now(b, kAllDone);
  }
}

}  // namespace sim

using namespace sim;

// How often the worker looks for full buffers whose work is done; 0: as soon as there are any.
SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityFlushPeriod(uint32_t milliseconds) {
  SIM_FAULTS("cuptiActivityFlushPeriod");
  g_period_ms = milliseconds;
  Worker::get().period_changed();
  return CUPTI_SUCCESS;
}
