#include "collect/torch/collective_records.h"

#include <pthread.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace cuptiprof::torch {
namespace {

struct Open {
  const RecordFunction* call = nullptr;
  CollectiveRecord record;
};

struct Kept {
  size_t room = 0;
  uint64_t lost = 0;
  std::vector<Open> open;  // as many as threads communicate at once
  std::deque<CollectiveRecord> ended;
};

std::mutex g_kept_mutex;  // guards kept()
Kept& kept() {
  static auto* all = new Kept;  // never destroyed: threads may outlive static destructors
  return *all;
}

void close(Kept& k, std::vector<Open>::iterator open, int64_t end) {
  CollectiveRecord record = std::move(open->record);
  k.open.erase(open);
  g_open_collectives.store(static_cast<uint32_t>(k.open.size()), std::memory_order_relaxed);
  record.end = end;
  k.ended.push_back(std::move(record));
  if (k.ended.size() <= k.room) return;
  k.ended.pop_front();
  ++k.lost;
}

std::vector<Open>::iterator find_open(Kept& k, const RecordFunction& call) {
  return std::find_if(k.open.begin(), k.open.end(), [&](const Open& o) { return o.call == &call; });
}

}  // namespace

void keep_collectives(size_t room) {
  // A child of fork must not find the lock taken by a thread that it does not have.
  static const int registered = pthread_atfork([] { g_kept_mutex.lock(); }, [] { g_kept_mutex.unlock(); },
                                               [] { g_kept_mutex.unlock(); });
  static_cast<void>(registered);
  const std::lock_guard lock(g_kept_mutex);
  Kept& k = kept();
  if (room != 0) {
    k = {};
    g_open_collectives.store(0, std::memory_order_relaxed);
  }
  k.room = room;
}

TakenCollectives take_collectives() {
  const std::lock_guard lock(g_kept_mutex);
  Kept& k = kept();
  return {std::exchange(k.ended, {}), std::exchange(k.lost, 0)};
}

void collective_begins(const RecordFunction& call, uint32_t thread) noexcept try {
  Open open{.call = &call, .record = {.start = now_ns(), .thread = thread, .facts = {}}};
  if (!collective_facts(open.record.facts)) return;
  const std::lock_guard lock(g_kept_mutex);
  Kept& k = kept();
  if (k.room == 0) return;
  // Its end was not seen: another operator has its place in memory.
  if (const auto before = find_open(k, call); before != k.open.end()) close(k, before, open.record.start);
  k.open.push_back(std::move(open));
  g_open_collectives.store(static_cast<uint32_t>(k.open.size()), std::memory_order_relaxed);
} catch (...) {
  // No memory: the program's collective goes on.
  const std::lock_guard lock(g_kept_mutex);
  ++kept().lost;
}

void collective_ends(const RecordFunction& call) noexcept try {
  const int64_t end = now_ns();
  const std::lock_guard lock(g_kept_mutex);
  Kept& k = kept();
  if (const auto open = find_open(k, call); open != k.open.end()) close(k, open, end);
} catch (...) {
  const std::lock_guard lock(g_kept_mutex);
  ++kept().lost;
}

}  // namespace cuptiprof::torch
