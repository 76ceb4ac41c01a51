#include "counters/range/kernel_counters.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "cupti/captures.h"
#include "launch/exclusion.h"
#include "store/losses.h"

namespace cuptiprof {
namespace {

constexpr uint32_t kMaxBreakdowns = 3;
constexpr size_t kReplayedRanges = 8;  // one launch makes one; more show that it was not alone

}  // namespace

KernelCounters::KernelCounters(std::shared_ptr<const Api> api, CounterOptions options)
    : CounterStrategy(std::move(api), std::move(options)),
      x_planned(*x_api, x_options.chip),
      x_direct(x_options.strategy == Strategy::kIterate || x_options.groups.front().passes == 1),
      x_selective(x_options.selector.filter && !x_options.selector.filter->selects_all()),
      x_evaluator(x_api, x_options.chip, x_rows, x_events) {
  for (const PassGroup& g : x_options.groups) x_configs.emplace_back(g);
  x_contexts.reserve(kMaxContexts);  // entries stay where they are
}

KernelCounters::~KernelCounters() = default;

bool KernelCounters::is_capturing(CUstream stream) const noexcept {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return x_api->cuStreamIsCapturing && x_api->cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

KernelCounters::PerContext* KernelCounters::context_of(CUcontext context, uint32_t uid) noexcept {
  PerContext* place = nullptr;
  for (PerContext& c : x_contexts) {
    if (c.context == context && c.uid == uid) {
      if (c.refused && !c.retry.is_due(c.refused)) return nullptr;
      if (c.batch || c.replay) return &c;
      place = &c;  // its profiler broke down
      break;
    }
    if (!c.context) place = &c;  // of a context that ended
  }
  if (!place) {
    if (x_contexts.size() == kMaxContexts) {
      x_events.fail(CUPTI_ERROR_MAX_LIMIT_REACHED, "cuptiRangeProfilerEnable", 0);
      return nullptr;
    }
    place = &x_contexts.emplace_back();
  }
  PerContext& c = *place;
  if (c.context != context || c.uid != uid) c = {};
  c.context = context;
  c.uid = uid;
  c.refused = 0;
  CUptiResult rc = CUPTI_SUCCESS;
  x_clocks.hold(context);
  auto profiler = RangeProfiler::enable(*x_api, context, &rc, x_options.resets_caches);
  if (!profiler) {
    x_events.fail(rc, "cuptiRangeProfilerEnable", 0);
    c.refused = static_cast<int>(rc);
    c.retry.wait();
  } else if (x_direct) {
    try {
      c.batch = std::make_unique<RangeBatch>(std::move(profiler), RangeMode::kAutoRange, x_options.batch,
                                             &x_strangers);
    } catch (...) {
      c.refused = CUPTI_ERROR_OUT_OF_MEMORY;
    }
  } else {
    try {
      c.replayed = std::make_shared<DecodedRanges>();
      for (auto& copy : c.copies) copy = std::make_shared<DecodedRanges>();
      c.replay = std::move(profiler);
    } catch (...) {
      c.refused = CUPTI_ERROR_OUT_OF_MEMORY;
    }
  }
  return c.refused ? nullptr : &c;
}

// A profiler that does not obey could go on replaying every launch: it is taken off the context, and the next
// selected launch makes a new one, a few times.
void KernelCounters::break_down(PerContext& c) noexcept {
  finish_batch(c);
  c.batch.reset();
  c.replay.reset();
  if (++c.breakdowns == kMaxBreakdowns) c.refused = CUPTI_ERROR_UNKNOWN;
  say_whether_resident();
}

// With steps, every launch of a step is measured in the step's group. Without, each kernel takes the group it
// has seen least; the first of them, so that a whole loop body moves on together.
uint16_t KernelCounters::group_for(const SelectedLaunch& s) noexcept try {
  if (x_configs.size() == 1) return 0;
  const auto& p = s.params;
  auto pack = [](int32_t a, int32_t b) {
    return static_cast<uint64_t>(static_cast<uint32_t>(a)) << 32 | static_cast<uint32_t>(b);
  };
  const KernelKey key{pack(static_cast<int32_t>(s.name), static_cast<int32_t>(s.region)),
                      pack(p.grid[0], p.grid[1]) * 31 + static_cast<uint64_t>(p.grid[2]),
                      pack(p.block[0], p.block[1]) * 31 + static_cast<uint64_t>(p.block[2])};
  auto& counts = x_seen[key];
  if (counts.empty()) counts.resize(x_configs.size());
  const auto group =
      x_by_step ? x_group
                : static_cast<uint16_t>(std::min_element(counts.begin(), counts.end()) - counts.begin());
  ++counts[group];
  return group;
} catch (...) {
  return x_group;
}

bool KernelCounters::begin_replay(PerContext& c) noexcept {
  CUptiResult rc = CUPTI_SUCCESS;
  const char* call = "cuptiRangeProfilerSetConfig";
  if (!c.replay->config())
    rc = c.replay->configure(x_configs.front(), RangeMode::kKernelReplay, kReplayedRanges, c.replayed);
  if (rc == CUPTI_SUCCESS) {
    call = "cuptiRangeProfilerStart";
    rc = c.replay->start();
  }
  if (rc == CUPTI_SUCCESS) return true;
  x_events.fail(rc, call);
  break_down(c);
  return false;
}

// Decoded launch by launch, into an image that is cleared each time, as NVIDIA's callback_profiling sample
// does: an image of automatic ranges holds no kernel names, so a range is this launch's only when it is the
// only one and nothing was dropped.
void KernelCounters::end_replay(PerContext& c, Outcome outcome, CUptiResult stopped) noexcept {
  if (stopped != CUPTI_SUCCESS) {
    x_events.fail(stopped, "cuptiRangeProfilerStop");
    return break_down(c);
  }
  if (g_captures.any()) {  // it began meanwhile, and decoding would break it
    c.replay->forget();
    return count(x_events.capturing);
  }
  size_t dropped = 0;
  if (const CUptiResult rc = c.replay->decode(&dropped); rc != CUPTI_SUCCESS) {
    c.replay->forget();
    return x_events.fail(rc, "cuptiRangeProfilerDecodeData");
  }
  const size_t ranges = c.replay->ranges();
  if (outcome == Outcome::kRan && ranges > 0 && (ranges > 1 || dropped > 0)) outcome = Outcome::kMixed;
  if (outcome == Outcome::kRan && ranges == 0)
    count(x_events.dropped);
  else if (is_valid(outcome))
    add_replayed(c);
  if (c.replay->clear() != CUPTI_SUCCESS) c.replay->forget();
}

// The image is small and used again by the next launch: a copy is evaluated. Copies keep their memory.
void KernelCounters::add_replayed(PerContext& c) noexcept try {
  const auto copy = x_evaluator.wait_for_free(c.copies, std::chrono::milliseconds(x_options.turn_timeout_ms));
  if (!copy) return count(x_events.behind);
  copy->image = c.replayed->image;
  copy->pending.assign(1, {c.row, 1});
  copy->config = &x_configs.front();
  copy->ranges = 1;
  x_evaluator.hand_over(copy);
} catch (...) {
  x_events.fail(CUPTI_ERROR_OUT_OF_MEMORY, "cuptiProfilerHostEvaluateToGpuValues");
}

// False: the launch has no values, and that is counted.
bool KernelCounters::is_valid(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::kRan:
      return true;
    case Outcome::kCaptured:
      count(x_events.captured);
      break;
    case Outcome::kFailed:
      count(x_events.not_run);
      break;
    case Outcome::kMixed:
      count(x_events.mixed);
      break;
  }
  return false;
}

bool KernelCounters::entered(const LaunchEvent& launch) noexcept {
  const auto selected = x_selector.select(launch);
  if (!selected) return false;
  if (!x_planned.is_of(selected->device)) {
    count(x_events.other_chip);
    return false;
  }
  if (is_capturing(selected->params.stream)) {
    count(x_events.captured);
    return false;
  }
  // Counting waits for the GPU, which would break any capture on it.
  if (Captures::is_conflicting(*x_api) || !g_captures.enter()) {
    count(x_events.capturing);
    return false;
  }
  const std::chrono::milliseconds patience(x_options.turn_timeout_ms);
  if (!x_turn.take(patience)) {
    g_captures.leave();
    count(x_events.busy);
    return false;
  }
  auto refuse = [&](std::atomic<uint64_t>* reason) {
    if (reason) count(*reason);
    g_captures.leave();
    x_turn.give_back();
    return false;
  };
  // pause() waits for the turn after it switched off: whoever had not taken it by then must not begin.
  if (!x_on.load()) return refuse(&x_events.busy);
  PerContext* c = context_of(launch.call.context, launch.call.contextUid);
  if (!c) return refuse(&x_events.failed);
  if (!g_exclusion.take(launch.call.context, patience)) return refuse(&x_events.busy);
  // What was launched before is waited for; where the profiler stays started nothing can have been.
  if (!(c->batch && c->batch->is_started())) {
    if (!c->idle) c->idle.reset(new (std::nothrow) ContextIdle(*x_api));
    if (c->idle && !c->idle->wait(launch.call.context, patience)) {
      g_exclusion.give_back();
      return refuse(&x_events.mixed);
    }
  }
  CounterRow& row = c->row;
  row = {};
  row.name = selected->name;
  row.region = selected->region;
  row.correlation = launch.call.correlationId;
  row.thread = launch.thread;
  row.device = selected->device;
  row.context = selected->context;
  row.stream = selected->stream;
  row.grid = selected->params.grid;
  row.block = selected->params.block;
  row.passes = static_cast<uint16_t>(x_direct ? 1 : x_options.groups.front().passes);
  row.start = now_ns();
  bool ok = false;
  if (x_direct) {
    // A capture was open when it had become full.
    if (c->batch->full()) c->batch->finish(x_evaluator, x_events);
    const uint16_t group = group_for(*selected);
    ok = c->batch->prepare(x_configs[group], group, 1, x_evaluator, x_events, patience) &&
         c->batch->open(row, x_events);
  } else {
    ok = begin_replay(*c);
  }
  if (!ok) {
    g_exclusion.give_back();
    if (c->batch && c->batch->is_broken()) break_down(*c);
    return refuse(nullptr);
  }
  x_current = c;
  return true;
}

void KernelCounters::left(const LaunchEvent& launch) noexcept {
  PerContext& c = *x_current;
  const int64_t end = now_ns();
  const auto* result = static_cast<const CUresult*>(launch.call.functionReturnValue);
  Outcome outcome = launch.captured                     ? Outcome::kCaptured
                    : result && *result != CUDA_SUCCESS ? Outcome::kFailed
                                                        : Outcome::kRan;
  // Others may launch as soon as nothing is counted any more, no earlier.
  const bool stay = x_direct && !x_selective && outcome == Outcome::kRan && c.batch->may_stay();
  const CUptiResult stopped = x_direct ? c.batch->pop(x_events, stay) : c.replay->stop();
  say_whether_resident();
  if (!g_exclusion.give_back() && outcome == Outcome::kRan) outcome = Outcome::kMixed;
  if (x_direct) {
    c.batch->close(end, stopped == CUPTI_SUCCESS && is_valid(outcome), x_events);
    // A full batch can wait for the end of a capture; one whose newest range is doubtful cannot.
    if (c.batch->must_finish() && !(c.batch->full() && g_captures.any())) finish_batch(c);
    if (c.batch->is_broken()) break_down(c);
    say_whether_resident();
  } else {
    c.row.end = end;
    end_replay(c, outcome, stopped);
  }
  g_captures.leave();
  x_turn.give_back();
}

void KernelCounters::finish_batch(PerContext& c) noexcept {
  if (!c.batch) return;
  if (g_captures.any())
    c.batch->give_up(x_events.capturing, x_events);
  else
    c.batch->finish(x_evaluator, x_events);
}

void KernelCounters::finish_batches(Deadline captures) noexcept {
  const NoCapture none(captures);
  for (PerContext& c : x_contexts) finish_batch(c);
  say_whether_resident();
}

void KernelCounters::say_whether_resident() noexcept {
  g_exclusion.set_resident(std::any_of(x_contexts.begin(), x_contexts.end(),
                                       [](const PerContext& c) { return c.batch && c.batch->is_started(); }));
}

// While the turn is held nobody begins to measure, and who has entered is waited for.
void KernelCounters::make_way(std::atomic<const void*>& place, CUcontext context,
                              std::chrono::milliseconds patience) noexcept {
  const HeldTurn turn(x_turn, patience);
  // A launch that is being captured does not run, and a stop might wait for the context.
  if (turn && !g_captures.any())
    stop_all_of(context);
  else
    x_strangers.fetch_add(1);  // it becomes a range of a batch that knows nothing of it
  g_exclusion.enter(place, context, patience);
}

// The driver has not begun yet; launches that come meanwhile find the capture and are not counted.
void KernelCounters::capture_begins() noexcept {
  const HeldTurn turn(x_turn, std::chrono::milliseconds(x_options.turn_timeout_ms));
  if (turn) stop_all_of(nullptr);
}

// Null: of every context.
void KernelCounters::stop_all_of(CUcontext context) noexcept {
  for (PerContext& c : x_contexts) {
    if ((context && c.context != context) || !c.batch) continue;
    c.batch->hold(x_events);
    if (c.batch->is_broken()) break_down(c);
  }
  say_whether_resident();
}

void KernelCounters::step() noexcept {
  const HeldTurn turn(x_turn, kControlPatience);
  if (!turn) return;
  // What is left of a group is finished when the first launch of the next one is counted.
  if (const NoCapture none; none && x_configs.size() > 1) finish_batches({});
  x_by_step = true;
  x_group = static_cast<uint16_t>((x_group + 1) % x_configs.size());
}

void KernelCounters::complete(Deadline captures) noexcept {
  // While a capture is open they stay as they are, and come with the next result.
  if (const NoCapture none(captures); none)
    if (const HeldTurn turn(x_turn, kControlPatience); turn) finish_batches(captures);
  x_evaluator.drain(kControlPatience);
}

void KernelCounters::kept() noexcept {
  if (const HeldTurn turn(x_turn, kControlPatience); turn) x_kept_group = x_group;
}

void KernelCounters::discarded() noexcept {
  if (const HeldTurn turn(x_turn, kControlPatience); turn) x_group = x_kept_group;
}

void KernelCounters::pause(Deadline captures) noexcept {
  x_on.store(false);
  complete(captures);
}

bool KernelCounters::finish(Deadline captures) noexcept {
  x_on.store(false);
  // When a launch hangs inside CUPTI its profiler cannot be taken away from under it.
  const HeldTurn turn(x_turn, kControlPatience);
  if (!turn) {
    if (!std::exchange(x_hangs, true)) count(x_events.unfinished);
    return false;
  }
  finish_batches(captures);
  x_contexts.clear();
  if (!x_evaluator.drain(kControlPatience)) return false;
  x_evaluator.stop();
  return true;
}

void KernelCounters::context_ends(CUcontext context) noexcept {
  const HeldTurn turn(x_turn, kControlPatience);
  if (!turn) return;
  for (PerContext& c : x_contexts) {
    if (c.context != context) continue;
    finish_batch(c);
    c = {};
  }
  say_whether_resident();
}

}  // namespace cuptiprof
