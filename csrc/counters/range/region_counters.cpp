#include "counters/range/region_counters.h"

#include "base/error.h"
#include "cupti/captures.h"
#include "store/losses.h"

namespace cuptiprof {
namespace {

// Of one run of work that is repeated: they are decoded at its end.
constexpr uint32_t kRepeatedRanges = 1024;
constexpr auto kEntryPatience = std::chrono::milliseconds(2000);    // for what was launched before a region
constexpr auto kCapturePatience = std::chrono::milliseconds(1000);  // between passes of repeated work

uintptr_t this_thread() noexcept {
  static thread_local char here;
  return reinterpret_cast<uintptr_t>(&here);
}

}  // namespace

RegionCounters::RegionCounters(std::shared_ptr<const Api> api, CounterOptions options)
    : CounterStrategy(std::move(api), std::move(options)),
      x_planned(*x_api, x_options.chip),
      x_evaluator(x_api, x_options.chip, x_rows, x_events) {
  for (const PassGroup& g : x_options.groups) x_configs.emplace_back(g);
  x_contexts.reserve(kMaxContexts);
}

bool RegionCounters::is_repeated() const noexcept {
  return x_options.levels > 1 || x_configs.size() > 1 || x_options.groups.front().passes > 1;
}

RegionCounters::PerContext* RegionCounters::context_of(CUcontext context) noexcept try {
  PerContext* c = nullptr;
  for (PerContext& known : x_contexts)
    if (known.context == context) c = &known;
  if (c && (c->batch || !c->retry.is_due(c->refused))) return c->batch ? c : nullptr;
  if (!c) {
    if (x_contexts.size() == kMaxContexts) {
      x_events.fail(CUPTI_ERROR_MAX_LIMIT_REACHED, "cuptiRangeProfilerEnable", 0);
      return nullptr;
    }
    x_contexts.push_back({context, x_contexts_seen++, nullptr, std::make_unique<ContextIdle>(*x_api)});
    c = &x_contexts.back();
  }
  CUptiResult rc = CUPTI_SUCCESS;
  x_clocks.hold(context);
  auto profiler = RangeProfiler::enable(*x_api, context, &rc, x_options.resets_caches);
  c->refused = static_cast<int>(rc);
  if (profiler) {
    c->batch = std::make_unique<RangeBatch>(std::move(profiler), RangeMode::kUserRange,
                                            is_repeated() ? kRepeatedRanges : x_options.batch);
    return c;
  }
  x_events.fail(rc, "cuptiRangeProfilerEnable", 0);
  c->retry.wait();
  return nullptr;
} catch (...) {
  return nullptr;
}

bool RegionCounters::open(CUcontext context, CounterRow row) noexcept {
  x_current = nullptr;
  if (x_api->cuptiGetDeviceId) x_api->cuptiGetDeviceId(context, &row.device);
  if (!x_planned.is_of(row.device)) {
    count(x_events.other_chip);
    return false;
  }
  PerContext* c = context_of(context);
  if (!c) {
    count(x_events.failed);
    return false;
  }
  // What was launched before is waited for: the counters are the GPU's, and would count it too.
  if (g_captures.enter()) {
    const bool idle = c->idle->wait(context, kEntryPatience);
    g_captures.leave();
    if (!idle) {
      count(x_events.mixed);
      return false;
    }
  }
  // Runs of the repeated work, and contexts within one, are numbered apart.
  row.sequence = (x_round * kMaxContexts + c->index % kMaxContexts) * x_options.batch;
  // A capture was open when it had become full.
  if (!is_repeated() && c->batch->full()) finish_batch(*c);
  const bool opened = c->batch->prepare(x_configs[x_group], x_group, x_options.levels, x_evaluator, x_events,
                                        kEntryPatience) &&
                      c->batch->open(row, x_events);
  if (opened) x_current = c->batch.get();
  if (c->batch->is_broken() && !opened) c->batch.reset();
  return opened;
}

void RegionCounters::finish_batch(PerContext& c) noexcept {
  if (!c.batch) return;
  if (const NoCapture none; none)
    c.batch->finish(x_evaluator, x_events);
  else
    c.batch->give_up(x_events.capturing, x_events);
}

void RegionCounters::finish_batches(Deadline captures) noexcept {
  const NoCapture none(captures);
  for (PerContext& c : x_contexts) finish_batch(c);
}

void RegionCounters::release() noexcept {
  x_depth = 0;
  x_owner = 0;
  x_crossed = false;
  x_current = nullptr;
  x_waiting.store(false);
}

bool RegionCounters::entered(const RegionEvent& region) noexcept {
  if (!x_on.load(std::memory_order_relaxed)) return false;
  uint32_t path = 0;
  if (!x_selector.selects_path(region.regions, {}, &path)) return false;
  x_selector.count_selected();
  const HeldTurn turn(x_turn, std::chrono::milliseconds(x_options.turn_timeout_ms));
  // Another thread's region is not waited for: it may be open for long.
  if (!turn || !x_on.load() || (x_owner != 0 && x_owner != this_thread())) {
    count(x_events.busy);
    return false;
  }
  if (g_captures.any()) {
    count(x_events.capturing);
    return false;
  }
  CounterRow row;
  row.name = row.region = path;
  row.thread = region.thread;
  row.start = region.time;
  row.kind = RangeKind::kRegion;
  row.passes = static_cast<uint16_t>(x_options.groups[x_group].passes);
  if (x_owner != 0) {
    if (x_depth >= x_options.levels || x_crossed || !x_current) {
      count(x_events.nested);
      return false;
    }
    row.sequence = x_row.sequence;
    if (!x_current->open(row, x_events)) return false;
    ++x_depth;
    return true;
  }
  if (region.context && !open(region.context, row)) return false;
  x_owner = this_thread();
  x_captures_before = g_captures.begun();
  x_depth = 1;
  x_row = row;
  x_waiting.store(!region.context);
  return true;
}

bool RegionCounters::entered(const LaunchEvent& launch) noexcept {
  const HeldTurn turn(x_turn, std::chrono::milliseconds(x_options.turn_timeout_ms));
  // Work of another thread is not let in: this one may leave the region meanwhile.
  if (!turn || x_owner != this_thread() || !x_waiting.exchange(false)) return false;
  if (g_captures.any()) {
    count(x_events.capturing);
    return false;
  }
  open(launch.call.context, x_row);
  return false;
}

void RegionCounters::left(const RegionEvent& region) noexcept {
  const HeldTurn turn(x_turn, kControlPatience);
  if (!turn || x_owner != this_thread() || x_depth == 0) return;
  if (x_waiting.exchange(false)) count(x_events.no_context);
  // CUPTI ends the innermost range, whichever region was left: those of interleaved tasks cannot be told
  // apart.
  if (region.level + 1 != x_depth) x_crossed = true;
  if (x_current) {
    const bool captured = g_captures.any() || g_captures.begun() != x_captures_before;
    if (x_crossed)
      count(x_events.crossing);
    else if (captured)
      count(x_events.capturing);
    x_current->close(region.time, !x_crossed && !captured, x_events);
  }
  if (--x_depth > 0) return;
  // What further passes will repeat is kept until they are done.
  if (!is_repeated() && x_current && (x_current->full() || x_current->is_broken()))
    if (const NoCapture none; none) x_current->finish(x_evaluator, x_events);
  release();
}

bool RegionCounters::next_pass() {
  const HeldTurn turn(x_turn, kControlPatience);
  if (!turn || x_owner != 0)
    throw Error(ErrorKind::kSession, "a region is still open at the end of the repeated work",
                "open and close every region inside the callable");
  bool again = false;
  for (PerContext& c : x_contexts)
    if (c.batch) again |= c.batch->next_pass(x_events);
  if (again) return true;
  finish_batches(std::chrono::steady_clock::now() + kCapturePatience);
  x_group = static_cast<uint16_t>((x_group + 1) % x_configs.size());
  if (x_group == 0) ++x_round;
  return x_group != 0;
}

void RegionCounters::abandon_passes() noexcept {
  const HeldTurn turn(x_turn, kControlPatience);
  if (!turn) return;
  for (PerContext& c : x_contexts)
    if (c.batch) c.batch->abandon(x_events);
  release();
  x_group = 0;
  ++x_round;
}

// Repeated work is complete when its last pass is; regions that are open now come with the next result.
void RegionCounters::complete(Deadline captures) noexcept {
  finish_closed(captures);
  x_evaluator.drain(kControlPatience);
}

void RegionCounters::finish_closed(Deadline captures) noexcept {
  // While a capture is open they stay as they are, and come with the next result.
  const NoCapture none(captures);
  const HeldTurn turn(x_turn, kControlPatience);
  if (!none || !turn || is_repeated()) return;
  for (PerContext& c : x_contexts)
    if (c.batch && !c.batch->has_open()) c.batch->finish(x_evaluator, x_events);
}

void RegionCounters::pause(Deadline captures) noexcept {
  x_on.store(false);
  complete(captures);
}

bool RegionCounters::finish(Deadline captures) noexcept {
  x_on.store(false);
  const HeldTurn turn(x_turn, kControlPatience);
  if (!turn) return false;
  // A region that is still open is ended here: nobody is inside the observer any more.
  finish_batches(captures);
  if (x_waiting.load()) count(x_events.unfinished);
  release();
  x_contexts.clear();
  if (!x_evaluator.drain(kControlPatience)) return false;
  x_evaluator.stop();
  return true;
}

void RegionCounters::context_ends(CUcontext context) noexcept {
  const HeldTurn turn(x_turn, kControlPatience);
  if (!turn) return;
  std::erase_if(x_contexts, [&](PerContext& c) {
    if (c.context != context) return false;
    finish_batch(c);
    if (c.batch.get() == x_current) x_current = nullptr;
    return true;
  });
}

}  // namespace cuptiprof
