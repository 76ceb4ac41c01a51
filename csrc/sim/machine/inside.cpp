#include "sim/machine/inside.h"
#include "sim/machine/current_context.h"

#include <pthread.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <vector>

#include "sim/machine/machine.h"

namespace sim {
namespace {

using Clock = std::chrono::steady_clock;

struct Places {
  std::mutex mutex;  // guards the two below, and changes of `closed`
  std::deque<std::atomic<bool>> all;
  std::vector<std::atomic<bool>*> free;
  std::condition_variable opened;
  std::atomic<bool> closed{false};  // somebody is alone, or wants to be
};

Places& places() {
  static auto* p = new Places;  // never destroyed (Machine::get)
  return *p;
}

constexpr std::chrono::seconds kForkWaits{1};  // for somebody to be done with the machine
constexpr std::chrono::microseconds kLookForLeavers{200};

thread_local std::atomic<bool>* t_place = nullptr;  // Inside::Thread::inside, for the handlers of fork

// A child of fork has one thread; the places of the others are free there, however they were left. It gets no
// machine that somebody was alone in: half of it would be new.
const int g_places_at_fork = pthread_atfork(
    [] {
      Places& p = places();
      std::unique_lock lock(p.mutex);
      p.opened.wait_for(lock, kForkWaits, [&p] { return !p.closed.load(); });
      lock.release();
    },
    [] { places().mutex.unlock(); },
    [] {
      Places& p = places();
      p.mutex.unlock();
      new (&p.opened)
          std::condition_variable;  // made anew in place: threads that waited on the old one are not here
      p.closed = false;
      p.free.clear();
      for (auto& place : p.all)
        if (&place != t_place) {
          place = false;
          p.free.push_back(&place);
        }
    });

}  // namespace

Inside::Thread::~Thread() {
  if (!inside) return;
  Places& p = places();
  const std::lock_guard lock(p.mutex);
  p.free.push_back(inside);
  inside = nullptr;  // what this thread calls from here on takes another
}

void Inside::enter(Thread& thread) {
  Places& p = places();
  if (!thread.inside) {
    const std::lock_guard lock(p.mutex);
    if (p.free.empty()) {
      thread.inside = &p.all.emplace_back(false);
    } else {
      thread.inside = p.free.back();
      p.free.pop_back();
    }
    t_place = thread.inside;
  }
  for (;;) {
    // Sequentially consistent on both sides: either we see that it is closed, or who closed it sees us.
    thread.inside->store(true);
    if (!p.closed.load()) break;
    thread.inside->store(false);
    std::unique_lock lock(p.mutex);
    p.opened.wait(lock, [&p] { return !p.closed.load(); });
  }
  if (const uint64_t machine = Machine::get().number(); thread.machine != machine) {
    thread.machine = machine;
    leave_contexts();
  }
}

Alone::Alone(std::chrono::milliseconds limit) {
  Inside::Thread& thread = Inside::this_thread();
  if (thread.depth != 0) return;
  Places& p = places();
  const auto until = Clock::now() + limit;
  std::unique_lock lock(p.mutex);
  if (!p.opened.wait_until(lock, until, [&p] { return !p.closed.load(); })) return;
  p.closed = true;
  const auto somebody = [&p] {
    for (const auto& place : p.all)
      if (place.load()) return true;
    return false;
  };
  while (somebody()) {
    // Who leaves says nothing, so that leaving costs nothing; it is short, or longer than `limit` anyway.
    p.opened.wait_for(lock, kLookForLeavers, [] { return false; });
    if (Clock::now() < until) continue;
    p.closed = false;
    p.opened.notify_all();
    return;
  }
  ++thread.depth;
  x_alone = true;
}

Alone::~Alone() {
  if (!x_alone) return;
  --Inside::this_thread().depth;
  Places& p = places();
  const std::lock_guard lock(p.mutex);
  p.closed = false;
  p.opened.notify_all();
}

}  // namespace sim
