#include "counters/region_counters.h"

#include "base/error.h"

namespace cuptiprof {
namespace {

constexpr size_t kMaxContexts = 64;
constexpr uint32_t kRepeatedRanges =
    4096;  // of one run of work that is repeated: they are decoded at its end
constexpr auto kControlPatience = std::chrono::milliseconds(2000);

}  // namespace

RegionCounters::RegionCounters(std::shared_ptr<const Api> api, CounterOptions options)
    : CounterStrategy(std::move(api), std::move(options)),
      x_host(x_api, x_options.chip, ProfilerType::kRange) {
  for (const PassGroup& g : x_options.groups) x_configs.emplace_back(g);
  x_contexts.reserve(kMaxContexts);
}

bool RegionCounters::is_repeated() const noexcept {
  return x_options.levels > 1 || x_options.groups.size() > 1 || x_options.groups.front().passes > 1;
}

RangeBatch* RegionCounters::batch_of(CUcontext context) noexcept try {
  for (PerContext& c : x_contexts)
    if (c.context == context) return c.batch.get();
  if (x_contexts.size() == kMaxContexts) return nullptr;
  CUptiResult rc = CUPTI_SUCCESS;
  auto profiler = RangeProfiler::enable(*x_api, context, &rc);
  if (!profiler) x_events.fail(rc, "cuptiRangeProfilerEnable", 0);
  x_contexts.push_back(
      {context, profiler ? std::make_unique<RangeBatch>(std::move(profiler),
                                                        is_repeated() ? kRepeatedRanges : x_options.batch)
                         : nullptr});
  return x_contexts.back().batch.get();
} catch (...) {
  return nullptr;
}

bool RegionCounters::open(CUcontext context, CounterRow row) noexcept {
  x_current = batch_of(context);
  if (!x_current) {
    x_events.failed.fetch_add(1);
    return false;
  }
  if (x_api->cuptiGetDeviceId) x_api->cuptiGetDeviceId(context, &row.device);
  return x_current->prepare(x_configs[x_group], x_group, x_options.levels, x_host, x_rows, x_events) &&
         x_current->open(row, x_events);
}

void RegionCounters::release() noexcept {
  x_depth = 0;
  x_current = nullptr;
  x_owner.store(0, std::memory_order_release);
  x_turn.give_back();
}

bool RegionCounters::entered(const RegionEvent& region) noexcept {
  if (!x_on.load(std::memory_order_relaxed)) return false;
  uint32_t path = 0;
  if (!x_selector.selects_path(region.regions, &path)) return false;
  CounterRow row;
  row.name = row.region = path;
  row.thread = region.thread;
  row.start = region.time;
  row.kind = RangeKind::kRegion;
  row.passes = static_cast<uint16_t>(x_options.groups[x_group].passes);
  if (x_owner.load(std::memory_order_acquire) == region.thread && x_depth > 0) {
    if (x_depth >= x_options.levels || !x_current || !x_current->open(row, x_events)) {
      x_events.nested.fetch_add(1);
      return false;
    }
    ++x_depth;
    return true;
  }
  // Not waited for: a region of another thread may be open for long.
  if (!x_turn.take(std::chrono::milliseconds(0))) {
    x_events.busy.fetch_add(1);
    return false;
  }
  x_current = nullptr;
  if (region.context && !open(region.context, row)) {
    release();
    return false;
  }
  x_depth = 1;
  x_row = row;
  x_owner.store(region.thread, std::memory_order_release);
  x_waiting.store(!region.context);
  return true;
}

bool RegionCounters::entered(const LaunchEvent& launch) noexcept {
  // Work of another thread is not let in: this one may leave the region meanwhile.
  if (x_owner.load(std::memory_order_acquire) != launch.thread || !x_waiting.exchange(false)) return false;
  if (!open(launch.call.context, x_row)) x_current = nullptr;
  return false;
}

void RegionCounters::left(const RegionEvent& region) noexcept {
  if (x_owner.load(std::memory_order_acquire) != region.thread || x_depth == 0) return;
  if (x_waiting.exchange(false)) x_events.no_context.fetch_add(1);
  if (x_current) x_current->close(region.time, true, x_events);
  if (--x_depth > 0) return;
  // What further passes will repeat is kept until they are done.
  if (!is_repeated() && x_current && x_current->full()) x_current->finish(x_host, x_rows, x_events);
  release();
}

bool RegionCounters::next_pass() {
  if (!x_turn.take(kControlPatience))
    throw Error(ErrorKind::kSession, "a region is still open at the end of the repeated work",
                "open and close every region inside the callable");
  bool again = false;
  for (PerContext& c : x_contexts)
    if (c.batch) again |= c.batch->next_pass(x_events);
  if (!again) {
    for (PerContext& c : x_contexts)
      if (c.batch) c.batch->finish(x_host, x_rows, x_events);
    x_group = static_cast<uint16_t>((x_group + 1) % x_configs.size());
    again = x_group != 0;
  }
  x_turn.give_back();
  return again;
}

void RegionCounters::complete() noexcept {
  if (!x_turn.take(std::chrono::milliseconds(0))) return;
  for (PerContext& c : x_contexts)
    if (c.batch) c.batch->finish(x_host, x_rows, x_events);
  x_turn.give_back();
}

void RegionCounters::pause() noexcept {
  x_on.store(false);
  complete();
}

void RegionCounters::finish() noexcept {
  x_on.store(false);
  // A region that is still open is ended here: nobody is inside the observer any more.
  if (!x_turn.take(std::chrono::milliseconds(0))) x_owner.store(0);
  for (PerContext& c : x_contexts)
    if (c.batch) c.batch->finish(x_host, x_rows, x_events);
  x_contexts.clear();
  x_turn.give_back();
}

void RegionCounters::context_ends(CUcontext context) noexcept {
  if (!x_turn.take(kControlPatience)) return;
  std::erase_if(x_contexts, [&](PerContext& c) {
    if (c.context != context) return false;
    if (c.batch) c.batch->finish(x_host, x_rows, x_events);
    return true;
  });
  x_turn.give_back();
}

}  // namespace cuptiprof
