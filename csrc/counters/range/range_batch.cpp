#include "counters/range/range_batch.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace cuptiprof {

RangeBatch::RangeBatch(std::unique_ptr<RangeProfiler> profiler, RangeMode mode, uint32_t capacity,
                       const std::atomic<uint64_t>* strangers)
    : x_profiler(std::move(profiler)),
      x_automatic(mode == RangeMode::kAutoRange),
      x_capacity(capacity),
      x_strangers(strangers),
      x_strangers_before(this->strangers()) {
  for (auto& image : x_images) {
    image = std::make_shared<DecodedRanges>();
    image->pending.reserve(capacity + 1);
  }
  x_now = x_images[0];
  x_open.reserve(64);
}

bool RangeBatch::prepare(const RangeConfig& config, uint16_t group, uint16_t levels,
                         RangeEvaluator& evaluator, CounterEvents& events,
                         std::chrono::milliseconds patience) noexcept {
  if (group != x_group && !is_empty()) finish(evaluator, events);
  if (x_profiler->config() != &config) {
    auto free = evaluator.wait_for_free(x_images, patience);
    if (!free) {
      events.behind.fetch_add(1);
      return false;
    }
    x_now = std::move(free);
    if (const CUptiResult rc = x_profiler->configure(
            config, x_automatic ? RangeMode::kAutoRange : RangeMode::kUserRange, x_capacity, x_now, levels);
        rc != CUPTI_SUCCESS) {
      events.fail(rc, "cuptiRangeProfilerSetConfig");
      x_broken = true;
      return false;
    }
    x_group = group;
    x_pass = 1;
    x_index = 0;
  }
  if (x_profiler->started()) return true;
  const CUptiResult rc = x_profiler->start();
  if (rc == CUPTI_SUCCESS) {
    ++x_starts;
    return true;
  }
  events.fail(rc, "cuptiRangeProfilerStart");
  x_broken = true;
  return false;
}

bool RangeBatch::open(const CounterRow& row, CounterEvents& events) noexcept {
  if (x_pass > 1) {
    // Later passes must bring the same ranges in the same order: names tie them together.
    if (x_index >= pending().size() || pending()[x_index].row.name != row.name) {
      events.differing.fetch_add(1);
      return false;
    }
  } else if (full() || x_open.size() == x_open.capacity()) {
    events.no_room.fetch_add(1);
    return false;
  }
  if (!x_automatic) {
    char name[16] = "";
    std::to_chars(name, name + sizeof name - 1, x_index);
    if (const CUptiResult rc = x_profiler->push(name); rc != CUPTI_SUCCESS) {
      events.fail(rc, "cuptiRangeProfilerPushRange");
      x_broken = true;
      return false;
    }
  }
  if (x_pass == 1) {
    pending().push_back({row});
    pending().back().row.group = x_group;
    pending().back().row.sequence += x_index;
  }
  x_open.push_back(x_index++);
  return true;
}

void RangeBatch::close(int64_t end, bool keep, CounterEvents& events) noexcept {
  if (x_open.empty()) return;
  PendingRange& p = pending()[x_open.back()];
  x_open.pop_back();
  if (x_pass == 1) p.row.end = end;
  p.keep = p.keep && keep;
  ++p.passes;
  const bool popped = std::exchange(x_popped, false) || x_automatic;
  if (x_automatic && !keep) x_doubtful = true;
  if (!popped && x_profiler->pop() != CUPTI_SUCCESS) {
    // Whoever gave it up has counted it.
    if (p.keep) events.fail(CUPTI_ERROR_INVALID_OPERATION, "cuptiRangeProfilerPopRange");
    p.keep = false;
    x_broken = true;
  }
}

CUptiResult RangeBatch::pop(CounterEvents& events, bool stay) noexcept {
  if (x_automatic) return stay || stop(events, 1) ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_OPERATION;
  const CUptiResult rc = x_profiler->pop();
  x_popped = true;
  if (rc == CUPTI_SUCCESS) return rc;
  events.fail(rc, "cuptiRangeProfilerPopRange");
  x_broken = true;
  return rc;
}

bool RangeBatch::stop(CounterEvents& events, uint64_t lost) noexcept {
  if (!x_profiler->started()) return true;
  const CUptiResult rc = x_profiler->stop(&x_all_passes);
  if (rc == CUPTI_SUCCESS) return true;
  events.fail(rc, "cuptiRangeProfilerStop", lost);
  x_broken = true;
  return false;
}

bool RangeBatch::next_pass(CounterEvents& events) noexcept {
  if (!x_profiler->started()) return false;
  if (x_pass > 1 && x_index != pending().size()) events.differing.fetch_add(1);
  if (!stop(events) || x_all_passes || is_empty()) return false;
  ++x_pass;
  x_index = 0;
  const CUptiResult rc = x_profiler->start();
  if (rc == CUPTI_SUCCESS) return true;
  events.fail(rc, "cuptiRangeProfilerStart", 0);
  x_broken = true;
  return false;
}

void RangeBatch::hold(CounterEvents& events) noexcept {
  if (x_open.empty()) stop(events);
}

void RangeBatch::abandon(CounterEvents& events) noexcept {
  while (!x_open.empty()) close(0, false, events);
  stop(events);
  events.unfinished.fetch_add(pending_count());
  start_anew();
}

void RangeBatch::start_anew() noexcept {
  if (!is_handed_over()) pending().clear();
  x_index = 0;
  x_pass = 1;
  x_starts = 0;
  x_doubtful = false;
  x_strangers_before = strangers();
  // A finished image is not written to again: the next range begins a new one.
  x_profiler->forget();
}

void RangeBatch::finish(RangeEvaluator& evaluator, CounterEvents& events) noexcept {
  while (!x_open.empty()) {
    events.unfinished.fetch_add(1);
    close(0, false, events);
  }
  const bool stopped = stop(events);
  const RangeConfig* config = x_profiler->config();
  if (!config || is_empty()) return start_anew();
  size_t lost = 0;
  const CUptiResult decoded = stopped ? x_profiler->decode(&lost) : CUPTI_ERROR_INVALID_OPERATION;
  if (decoded != CUPTI_SUCCESS) {
    events.fail(decoded, "cuptiRangeProfilerDecodeData", count_kept());
    x_broken = true;
    return start_anew();
  }
  const size_t ranges = x_profiler->ranges();
  // Automatic ranges are told apart by their number alone: one that is lost and one of a stranger would be as
  // many as expected.
  const bool countable = !x_automatic || (lost == 0 && strangers() == x_strangers_before);
  if (!countable) x_trusted = kFirstTrusted;
  const Match how = countable ? match(ranges) : Match::kNone;
  if (how == Match::kNone) {
    events.dropped.fetch_add(count_kept());
    return start_anew();
  }
  x_now->config = config;
  x_now->ranges = ranges;
  x_now->in_order = how == Match::kInOrder;
  x_now->all_passes = x_all_passes;
  x_now->passes = x_pass;
  evaluator.hand_over(x_now);
  start_anew();
}

void RangeBatch::give_up(std::atomic<uint64_t>& reason, CounterEvents& events) noexcept {
  while (!x_open.empty()) close(0, true, events);
  stop(events);
  reason.fetch_add(count_kept());
  start_anew();
}

// How the ranges of the image are told apart.
RangeBatch::Match RangeBatch::match(size_t ranges) noexcept {
  if (!x_automatic) return Match::kByName;
  const size_t launches = pending().size(), certain = launches - (x_doubtful ? 1 : 0);
  if (ranges == certain || (x_doubtful ? ranges > certain : ranges == launches)) {
    // What is doubtful came last.
    if (x_trusted < x_capacity) x_trusted *= 4;
    return Match::kInOrder;
  }
  if (ranges > launches || x_starts > 1) {
    // Something else made ranges, or those from before a start are gone: from now on neither is relied on.
    if (x_starts > 1 && ranges < certain) x_decodes_each = true;
    if (ranges > launches) x_stays = false;
    x_trusted = kFirstTrusted;
    return Match::kNone;
  }
  return Match::kByName;
}

size_t RangeBatch::count_kept() const noexcept {
  if (is_handed_over()) return 0;
  return static_cast<size_t>(
      std::count_if(pending().begin(), pending().end(), [](const auto& p) { return p.keep; }));
}

}  // namespace cuptiprof
