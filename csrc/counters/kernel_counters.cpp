#include "counters/kernel_counters.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"

namespace cuptiprof {
namespace {

constexpr size_t kMaxContexts = 64;
constexpr auto kControlPatience = std::chrono::milliseconds(2000);

}  // namespace

KernelCounters::KernelCounters(std::shared_ptr<const Api> api, CounterOptions options)
    : CounterStrategy(std::move(api), std::move(options)),
      x_host(x_api, x_options.chip, ProfilerType::kRange),
      x_direct(x_options.strategy == Strategy::kIterate || x_options.groups.front().passes == 1) {
  for (const PassGroup& g : x_options.groups) x_configs.emplace_back(g);
  x_contexts.reserve(kMaxContexts);  // entries stay where they are
  x_values.reserve(1024);
}

KernelCounters::~KernelCounters() = default;

bool KernelCounters::is_capturing(CUstream stream) const noexcept {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return x_api->cuStreamIsCapturing && x_api->cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

KernelCounters::PerContext* KernelCounters::context_of(CUcontext context, uint32_t uid) noexcept {
  for (PerContext& c : x_contexts)
    if (c.context == context && c.uid == uid) return c.refused ? nullptr : &c;
  if (x_contexts.size() == kMaxContexts) return nullptr;
  PerContext c;
  c.context = context;
  c.uid = uid;
  CUptiResult rc = CUPTI_SUCCESS;
  auto profiler = RangeProfiler::enable(*x_api, context, &rc);
  if (!profiler) {
    x_events.fail(rc, "cuptiRangeProfilerEnable", 0);
    c.refused = static_cast<int>(rc);
  } else if (x_direct) {
    try {
      c.batch = std::make_unique<RangeBatch>(std::move(profiler), x_options.batch);
    } catch (...) {
      c.refused = CUPTI_ERROR_OUT_OF_MEMORY;
    }
  } else {
    c.replay = std::move(profiler);
  }
  x_contexts.push_back(std::move(c));
  return x_contexts.back().refused ? nullptr : &x_contexts.back();
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
  if (!c.replay->config() || c.replayed == x_options.batch) {
    c.replayed = 0;
    if (const CUptiResult rc =
            c.replay->configure(x_configs.front(), RangeMode::kKernelReplay, x_options.batch);
        rc != CUPTI_SUCCESS) {
      x_events.fail(rc, "cuptiRangeProfilerSetConfig");
      return false;
    }
  }
  const CUptiResult rc = c.replay->start();
  if (rc != CUPTI_SUCCESS) x_events.fail(rc, "cuptiRangeProfilerStart");
  return rc == CUPTI_SUCCESS;
}

// Decoded launch by launch: an image of automatic ranges holds no kernel names, so the newest range is this
// launch's only as long as nothing else was added.
void KernelCounters::end_replay(PerContext& c, bool captured) noexcept try {
  if (const CUptiResult rc = c.replay->stop(); rc != CUPTI_SUCCESS)
    return x_events.fail(rc, "cuptiRangeProfilerStop");
  size_t dropped = 0;
  if (const CUptiResult rc = c.replay->decode(&dropped); rc != CUPTI_SUCCESS)
    return x_events.fail(rc, "cuptiRangeProfilerDecodeData");
  const size_t ranges = c.replay->ranges();
  if (captured || ranges == c.replayed) {
    (captured ? x_events.captured : x_events.dropped).fetch_add(1);
    return;
  }
  c.replayed = ranges;
  x_values.assign(x_configs.front().names.size(), std::nan(""));
  x_host.evaluate(c.replay->image(), ranges - 1, x_configs.front().names, x_values);
  if (!x_rows.add(c.row, x_values)) x_events.no_room.fetch_add(1);
} catch (...) {
  x_events.fail(CUPTI_ERROR_UNKNOWN, "cuptiProfilerHostEvaluateToGpuValues");
}

bool KernelCounters::entered(const LaunchEvent& launch) noexcept {
  const auto selected = x_selector.select(launch);
  if (!selected) return false;
  if (is_capturing(selected->params.stream)) {
    x_events.captured.fetch_add(1);
    return false;
  }
  if (!x_turn.take(std::chrono::milliseconds(x_options.turn_timeout_ms))) {
    x_events.busy.fetch_add(1);
    return false;
  }
  PerContext* c = context_of(launch.call.context, launch.call.contextUid);
  if (!c) {
    x_events.failed.fetch_add(1);
    x_turn.give_back();
    return false;
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
    const uint16_t group = group_for(*selected);
    ok = c->batch->prepare(x_configs[group], group, 1, x_host, x_rows, x_events) &&
         c->batch->open(row, x_events);
  } else {
    ok = begin_replay(*c);
  }
  if (!ok) {
    x_turn.give_back();
    return false;
  }
  x_current = c;
  return true;
}

void KernelCounters::left(const LaunchEvent& launch) noexcept {
  PerContext& c = *x_current;
  const int64_t end = now_ns();
  if (x_direct) {
    const auto* result = static_cast<const CUresult*>(launch.call.functionReturnValue);
    const bool ran = !launch.captured && (!result || *result == CUDA_SUCCESS);
    c.batch->close(end, ran, x_events);
    if (launch.captured) x_events.captured.fetch_add(1);
    if (c.batch->full()) c.batch->finish(x_host, x_rows, x_events);
  } else {
    c.row.end = end;
    end_replay(c, launch.captured);
  }
  x_turn.give_back();
}

void KernelCounters::finish_batches() noexcept {
  for (PerContext& c : x_contexts)
    if (c.batch) c.batch->finish(x_host, x_rows, x_events);
}

void KernelCounters::step() noexcept {
  if (!x_turn.take(kControlPatience)) return;
  if (x_configs.size() > 1) finish_batches();
  x_by_step = true;
  x_group = static_cast<uint16_t>((x_group + 1) % x_configs.size());
  x_turn.give_back();
}

void KernelCounters::complete() noexcept {
  if (!x_turn.take(kControlPatience)) return;
  finish_batches();
  x_turn.give_back();
}

void KernelCounters::pause() noexcept {
  x_on.store(false);
  complete();
}

void KernelCounters::finish() noexcept {
  x_on.store(false);
  if (!x_turn.take(kControlPatience)) {
    // A launch hangs inside CUPTI: its profiler cannot be taken away from under it.
    x_events.unfinished.fetch_add(1);
    return;
  }
  finish_batches();
  x_contexts.clear();
  x_turn.give_back();
}

void KernelCounters::context_ends(CUcontext context) noexcept {
  if (!x_turn.take(kControlPatience)) return;
  for (PerContext& c : x_contexts) {
    if (c.context != context) continue;
    if (c.batch) c.batch->finish(x_host, x_rows, x_events);
    c.batch.reset();
    c.replay.reset();
    c.context = nullptr;
    c.refused = CUPTI_ERROR_INVALID_CONTEXT;
  }
  x_turn.give_back();
}

}  // namespace cuptiprof
