#include "counters/range_batch.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

namespace cuptiprof {

RangeBatch::RangeBatch(std::unique_ptr<RangeProfiler> profiler, uint32_t capacity)
    : x_profiler(std::move(profiler)), x_capacity(capacity) {
  x_pending.reserve(capacity + 1);
  x_open.reserve(64);
}

bool RangeBatch::prepare(const RangeConfig& config, uint16_t group, uint16_t levels, const MetricHost& host,
                         CounterRows& rows, CounterEvents& events) noexcept {
  if (group != x_group && !x_pending.empty()) finish(host, rows, events);
  if (x_profiler->config() != &config) {
    if (const CUptiResult rc = x_profiler->configure(config, RangeMode::kUserRange, x_capacity, levels);
        rc != CUPTI_SUCCESS) {
      events.fail(rc, "cuptiRangeProfilerSetConfig");
      return false;
    }
    x_group = group;
    x_first_pass = true;
    x_index = 0;
  }
  if (x_profiler->started()) return true;
  const CUptiResult rc = x_profiler->start();
  if (rc != CUPTI_SUCCESS) events.fail(rc, "cuptiRangeProfilerStart");
  return rc == CUPTI_SUCCESS;
}

bool RangeBatch::open(const CounterRow& row, CounterEvents& events) noexcept {
  if (x_open.size() == x_open.capacity()) return false;
  if (!x_first_pass) {
    // Later passes must bring the same ranges in the same order: names tie them together.
    if (x_index >= x_pending.size() || x_pending[x_index].row.name != row.name) {
      events.differing.fetch_add(1);
      return false;
    }
  } else if (full()) {
    events.no_room.fetch_add(1);
    return false;
  }
  char name[16] = "";
  std::to_chars(name, name + sizeof name - 1, x_index);
  if (const CUptiResult rc = x_profiler->push(name); rc != CUPTI_SUCCESS) {
    events.fail(rc, "cuptiRangeProfilerPushRange");
    return false;
  }
  if (x_first_pass) {
    x_pending.push_back({row});
    x_pending.back().row.group = x_group;
    x_pending.back().row.sequence = x_index;
  }
  x_open.push_back(x_index++);
  return true;
}

void RangeBatch::close(int64_t end, bool keep, CounterEvents& events) noexcept {
  if (x_open.empty()) return;
  Pending& p = x_pending[x_open.back()];
  x_open.pop_back();
  p.is_open = false;
  if (x_first_pass) {
    p.row.end = end;
    p.keep = keep;
  }
  if (const CUptiResult rc = x_profiler->pop(); rc != CUPTI_SUCCESS) {
    events.fail(rc, "cuptiRangeProfilerPopRange");
    p.keep = false;
  }
}

bool RangeBatch::next_pass(CounterEvents& events) noexcept {
  if (!x_profiler->started()) return false;
  if (!x_first_pass && x_index != x_pending.size()) events.differing.fetch_add(1);
  bool all = true;
  if (const CUptiResult rc = x_profiler->stop(&all); rc != CUPTI_SUCCESS) {
    events.fail(rc, "cuptiRangeProfilerStop", x_pending.size());
    return false;
  }
  if (all || x_pending.empty()) return false;
  x_first_pass = false;
  x_index = 0;
  const CUptiResult rc = x_profiler->start();
  if (rc != CUPTI_SUCCESS) events.fail(rc, "cuptiRangeProfilerStart", x_pending.size());
  return rc == CUPTI_SUCCESS;
}

void RangeBatch::hold(CounterEvents& events) noexcept {
  if (!x_profiler->started() || !x_open.empty()) return;
  if (const CUptiResult rc = x_profiler->stop(); rc != CUPTI_SUCCESS)
    events.fail(rc, "cuptiRangeProfilerStop", 0);
}

void RangeBatch::finish(const MetricHost& host, CounterRows& rows, CounterEvents& events) noexcept try {
  while (!x_open.empty()) {
    events.unfinished.fetch_add(1);
    close(0, false, events);
  }
  if (x_profiler->started()) {
    if (const CUptiResult rc = x_profiler->stop(); rc != CUPTI_SUCCESS)
      events.fail(rc, "cuptiRangeProfilerStop", 0);
  }
  const RangeConfig* config = x_profiler->config();
  size_t dropped = 0, found = 0;
  if (config && !x_pending.empty()) {
    if (const CUptiResult rc = x_profiler->decode(&dropped); rc != CUPTI_SUCCESS)
      events.fail(rc, "cuptiRangeProfilerDecodeData", x_pending.size());
    else
      for (size_t i = 0, n = x_profiler->ranges(); i < n; ++i) {
        // "3", or "0/3" of a nested one.
        const std::string name = x_profiler->range_name(i);
        const size_t slash = name.rfind('/');
        const char* begin = name.c_str() + (slash == std::string::npos ? 0 : slash + 1);
        uint32_t index = 0;
        const auto parsed = std::from_chars(begin, name.c_str() + name.size(), index);
        if (parsed.ec != std::errc{} || index >= x_pending.size()) continue;
        ++found;
        const Pending& p = x_pending[index];
        if (!p.keep) continue;
        x_values.assign(config->names.size(), std::nan(""));
        host.evaluate(x_profiler->image(), i, config->names, x_values);
        if (!rows.add(p.row, x_values)) events.no_room.fetch_add(1);
      }
    if (found < x_pending.size()) events.dropped.fetch_add(std::max(dropped, x_pending.size() - found));
  }
  x_pending.clear();
  x_index = 0;
  x_first_pass = true;
  // A finished image is not written to again: the next range begins a new one.
  if (config) x_profiler->forget();
} catch (...) {
  events.fail(CUPTI_ERROR_UNKNOWN, "cuptiProfilerHostEvaluateToGpuValues", x_pending.size());
  x_pending.clear();
  x_profiler->forget();
}

}  // namespace cuptiprof
