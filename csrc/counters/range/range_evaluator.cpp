#include "counters/range/range_evaluator.h"

#include <pthread.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "store/losses.h"

namespace cuptiprof {

RangeEvaluator::RangeEvaluator(std::shared_ptr<const Api> api, const std::string& chip, CounterRows& rows,
                               CounterEvents& events)
    : x_api(std::move(api)), x_host(x_api, chip, ProfilerType::kRange), x_rows(rows), x_events(events) {
  x_values.reserve(1024);
}

RangeEvaluator::~RangeEvaluator() { stop(); }

void RangeEvaluator::start() {
  x_thread = std::thread([this] { run(); });
}

void RangeEvaluator::stop() noexcept {
  {
    const std::lock_guard lock(x_mutex);
    x_stopping = true;
  }
  x_come.notify_all();
  if (x_thread.joinable()) x_thread.join();
}

void RangeEvaluator::hand_over(std::shared_ptr<DecodedRanges> decoded) noexcept {
  {
    const std::lock_guard lock(x_mutex);
    if (x_handed_over - x_finished < kMost) {
      decoded->handed_over.store(true, std::memory_order_relaxed);
      x_waiting[x_handed_over++ % kMost] = std::move(decoded);
    }
  }
  if (!decoded) return x_come.notify_one();
  for (const PendingRange& p : decoded->pending) x_events.behind.fetch_add(p.keep);
  decoded->pending.clear();
}

std::shared_ptr<DecodedRanges> RangeEvaluator::wait_for_free(const std::shared_ptr<DecodedRanges>* images,
                                                             size_t count,
                                                             std::chrono::milliseconds patience) noexcept {
  const auto* end = images + count;
  const auto is_free = [](const auto& d) { return !d->handed_over.load(std::memory_order_acquire); };
  const auto* found = std::find_if(images, end, is_free);
  if (found == end) {
    // Launch after launch would wait otherwise.
    std::unique_lock lock(x_mutex);
    if (x_gave_up_at == x_finished) return nullptr;
    if (!x_done.wait_for(lock, patience, [&] { return (found = std::find_if(images, end, is_free)) != end; }))
      x_gave_up_at = x_finished;
  }
  return found == end ? nullptr : *found;
}

bool RangeEvaluator::drain(std::chrono::milliseconds patience) noexcept {
  std::unique_lock lock(x_mutex);
  const uint64_t wanted = x_handed_over;
  while (x_finished < wanted) {
    const uint64_t before = x_finished;
    if (!x_done.wait_for(lock, patience, [&] { return x_finished != before; })) return false;
  }
  return true;
}

void RangeEvaluator::run() noexcept {
  pthread_setname_np(pthread_self(), "cuptiprof-eval");
  std::unique_lock lock(x_mutex);
  for (;;) {
    x_come.wait(lock, [&] { return x_stopping || x_finished != x_handed_over; });
    if (x_finished == x_handed_over) return;
    std::shared_ptr<DecodedRanges> decoded = std::move(x_waiting[x_finished % kMost]);
    lock.unlock();
    evaluate(*decoded);
    decoded->pending.clear();
    decoded->handed_over.store(false, std::memory_order_release);
    decoded.reset();
    lock.lock();
    ++x_finished;
    x_done.notify_all();
  }
}

// Which pending range a range of the image is; none of them when that cannot be told.
size_t RangeEvaluator::index_of(const DecodedRanges& d, size_t range) const noexcept try {
  if (d.in_order) return range;
  // "3", or "0/3" of a nested one. Automatic ones have the number of the launch since the start.
  const std::string name = name_of_range(*x_api, d.image, range);
  const size_t slash = name.rfind('/');
  size_t index = 0;
  const char* begin = name.c_str() + (slash == std::string::npos ? 0 : slash + 1);
  return std::from_chars(begin, name.c_str() + name.size(), index).ec == std::errc{} ? index : SIZE_MAX;
} catch (...) {
  return SIZE_MAX;
}

void RangeEvaluator::evaluate(DecodedRanges& d) noexcept {
  for (size_t i = 0; i < d.ranges; ++i) {
    const size_t index = index_of(d, i);
    if (index >= d.pending.size()) continue;
    PendingRange& p = d.pending[index];
    if (!std::exchange(p.keep, false)) continue;
    if (!d.all_passes || p.passes != d.passes) {
      count(x_events.unfinished);
      continue;
    }
    try {
      x_values.assign(d.config->names.size(), std::nan(""));
      x_host.evaluate(d.image, i, d.config->names, x_values);
      count(x_events.no_room, x_rows.add(p.row, x_values));
    } catch (...) {
      x_events.fail(CUPTI_ERROR_UNKNOWN, "cuptiProfilerHostEvaluateToGpuValues");
    }
  }
  for (const PendingRange& p : d.pending) count(x_events.dropped, p.keep);
}

}  // namespace cuptiprof
