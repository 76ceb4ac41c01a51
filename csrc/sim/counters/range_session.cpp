#include "sim/counters/range_session.h"

#include <algorithm>
#include <utility>

#include "sim/counters/availability.h"
#include "sim/counters/device_sampler.h"
#include "sim/counters/metric_eval.h"
#include "sim/counters/replay_cost.h"
#include "sim/machine/faults.h"
#include "sim/machine/stream_captures.h"

namespace sim {
namespace {

constexpr size_t kMostRanges = 2000;  // in a pass: beyond 2,000 to 3,000 users had code 7

}  // namespace

CUptiResult RangeSession::data_size(CUpti_RangeProfiler_GetCounterDataSize_Params& p) {
  const std::lock_guard lock(x_mutex);
  if (!p.pMetricNames || !p.numMetrics || !p.maxNumOfRanges || p.maxNumRangeTreeNodes < p.maxNumOfRanges)
    return CUPTI_ERROR_INVALID_PARAMETER;
  const auto ids = raws_of_metrics(p.pMetricNames, p.numMetrics, cupti_chip_of(x_chip), Profiler::kRange);
  if (!ids) return CUPTI_ERROR_INVALID_PARAMETER;
  x_data_ids = *ids;
  x_data_rows = p.maxNumOfRanges;
  p.counterDataSize = CounterData::bytes(x_data_ids.size(), x_data_rows);
  return CUPTI_SUCCESS;
}

CUptiResult RangeSession::initialize_data(CUpti_RangeProfiler_CounterDataImage_Initialize_Params& p) {
  const std::lock_guard lock(x_mutex);
  if (x_started || x_data_rows == 0) return CUPTI_ERROR_INVALID_OPERATION;
  // An image that is cleared loses its ranges: what this session places next begins at the top.
  if (p.pCounterData == x_image) x_placed.clear();
  return CounterData::initialize(p.pCounterData, p.counterDataSize, x_chip, Profiler::kRange, x_data_ids,
                                 x_data_rows)
             ? CUPTI_SUCCESS
             : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult RangeSession::configure(const CUpti_RangeProfiler_SetConfig_Params& p) {
  const std::lock_guard lock(x_mutex);
  if (x_started) return CUPTI_ERROR_INVALID_OPERATION;
  CounterConfig config;
  const CounterData data(p.pCounterDataImage, p.counterDataImageSize);
  if (!read_config(p.pConfig, p.configSize, config) || config.profiler != Profiler::kRange || !data.valid() ||
      data.profiler() != Profiler::kRange || config.chip != cupti_chip_of(x_chip) ||
      data.chip() != config.chip)
    return CUPTI_ERROR_INVALID_PARAMETER;
  const bool user = p.range == CUPTI_UserRange, kernel = p.replayMode == CUPTI_KernelReplay;
  if ((!user && p.range != CUPTI_AutoRange) || p.replayMode <= CUPTI_Replay_INVALID ||
      p.replayMode >= CUPTI_Replay_COUNT || (user && kernel) || p.maxRangesPerPass == 0 ||
      p.numNestingLevels == 0 || (!user && p.numNestingLevels != 1) || p.minNestingLevel == 0 ||
      p.passIndex >= std::max<size_t>(config.passes, 1))
    return CUPTI_ERROR_INVALID_PARAMETER;
  size_t most = kMostRanges;
  if (const auto f = fault(CUPTISIM_FAULT_RANGE_LIMIT)) most = f->a;
  if (p.maxRangesPerPass > most) return CUPTI_ERROR_INVALID_OPERATION;
  const uint16_t target = p.targetNestingLevel ? p.targetNestingLevel : p.minNestingLevel;
  if (target < p.minNestingLevel || target >= p.minNestingLevel + p.numNestingLevels)
    return CUPTI_ERROR_INVALID_PARAMETER;
  for (const RawId id : unavailable_raws(config.chip, Profiler::kRange))
    if (std::ranges::any_of(config.entries, [id](const auto& e) { return e.id == id; }))
      return CUPTI_ERROR_NOT_SUPPORTED;
  // A later pass of application replay completes the rows of an earlier process.
  const bool resumed =
      p.replayMode == CUPTI_ApplicationReplay && (p.passIndex > 0 || target > p.minNestingLevel);
  if (!resumed || p.pCounterDataImage != x_image) x_placed.clear();
  x_config = std::move(config);
  x_image = p.pCounterDataImage, x_image_size = p.counterDataImageSize;
  x_range = p.range, x_replay = p.replayMode;
  x_max_ranges = p.maxRangesPerPass;
  x_min_level = p.minNestingLevel, x_levels = p.numNestingLevels;
  x_pass = p.passIndex, x_level = target;
  if (!resumed) ++x_round;
  x_next.clear(), x_rows.clear();
  x_kernels = x_undecoded = x_dropped = 0;
  x_configured = true;
  Machine::get().truth.counter_configs.fetch_add(1);
  return CUPTI_SUCCESS;
}

CUptiResult RangeSession::start() {
  const std::lock_guard lock(x_mutex);
  if (!x_configured || x_started) return CUPTI_ERROR_INVALID_OPERATION;
  // Ranges of every pass are numbered from its start. Kernel replay makes all passes at once and goes on
  // counting.
  if (!kernel_replay()) x_next.clear(), x_kernels = 0;
  x_started = true;
  g_counting.fetch_add(1);
  return CUPTI_SUCCESS;
}

void RangeSession::advance_pass() {
  if (kernel_replay() || ++x_pass < std::max(x_config.passes, 1u)) return;
  x_pass = 0;
  ++x_level;
}

CUptiResult RangeSession::stop(CUpti_RangeProfiler_Stop_Params& p) {
  const std::lock_guard lock(x_mutex);
  // A range that is still open has no end yet: it must be popped first.
  if (!x_started || !x_open.empty()) return CUPTI_ERROR_INVALID_OPERATION;
  x_started = false;
  g_counting.fetch_sub(1);
  advance_pass();
  const bool all = kernel_replay() || x_level >= x_min_level + x_levels;
  if (all) {  // the next start begins a new round
    x_level = x_min_level;
    ++x_round;
  }
  p.passIndex = x_pass;
  p.targetNestingLevel = x_level;
  p.isAllPassSubmitted = all;
  return CUPTI_SUCCESS;
}

void RangeSession::shut_down() {
  const std::lock_guard lock(x_mutex);
  if (x_started) g_counting.fetch_sub(1);
  x_started = false;
}

CUptiResult RangeSession::push(const char* name) {
  const std::lock_guard lock(x_mutex);
  if (!name) return CUPTI_ERROR_INVALID_PARAMETER;
  if (!x_started || x_range != CUPTI_UserRange) return CUPTI_ERROR_INVALID_OPERATION;
  Open o;
  o.name = x_open.empty() ? std::string() : x_open.back().name + '\0';
  o.name += name;
  o.sums.resize(x_config.entries.size());
  o.start = Machine::get().now();
  x_open.push_back(std::move(o));
  return CUPTI_SUCCESS;
}

CUptiResult RangeSession::pop() {
  const std::lock_guard lock(x_mutex);
  if (!x_started || x_open.empty()) return CUPTI_ERROR_INVALID_OPERATION;
  Open o = std::move(x_open.back());
  x_open.pop_back();
  const auto level = static_cast<uint16_t>(x_open.size() + 1);
  if (level != x_level) return CUPTI_SUCCESS;
  // Time goes on from the push to the pop, the host's included, and until what was launched inside has ended.
  const uint64_t end = std::max(o.end, Machine::get().now());
  const auto span = static_cast<double>(end - o.start);
  add_running(o.start, end, o.start, o.streams, o.sums);
  for (size_t i = 0; i < o.sums.size(); ++i) {
    const Raw& r = raws()[x_config.entries[i].id];
    if (r.kind == Raw::Kind::kElapsed || r.kind == Raw::Kind::kTime)
      o.sums[i] = elapsed_value(r, span, x_chip);
  }
  collect(level, std::move(o.name), o.start, end, o.sums);
  return CUPTI_SUCCESS;
}

void RangeSession::collect(uint16_t level, std::string name, uint64_t start, uint64_t end,
                           const std::vector<double>& values) {
  auto& truth = Machine::get().truth;
  const size_t number = x_next[level]++;
  const size_t held = kernel_replay() ? x_undecoded : number;
  if (held >= x_max_ranges || strikes(CUPTISIM_FAULT_DROP_RANGES)) {
    ++x_dropped;
    truth.ranges_dropped.fetch_add(1);
    return;
  }
  ++x_undecoded;
  Row row{{x_round, level, number}, std::move(name), start, end, {}};
  for (size_t i = 0; i < values.size(); ++i)
    if (in_pass(x_config.entries[i])) row.values.emplace_back(x_config.entries[i].id, values[i]);
  x_rows.push_back(std::move(row));
  truth.ranges_collected.fetch_add(1);
}

CUptiResult RangeSession::decode(size_t& dropped) {
  const std::lock_guard lock(x_mutex);
  if (!x_configured || x_started) return CUPTI_ERROR_INVALID_OPERATION;
  invalidate_captures(&x_context);  // it synchronises the context
  take_time("cuptiRangeProfilerDecodeData", x_rows.size());
  for (const Row& row : x_rows) {
    auto at = x_placed.find(row.key);
    if (at == x_placed.end()) {
      const CounterData data(x_image, x_image_size);
      if (!data.valid()) return CUPTI_ERROR_INVALID_PARAMETER;
      const size_t next = data.rows();
      if (!CounterData::add_row(x_image, x_image_size, row.name, row.start, row.end)) {
        ++x_dropped;
        Machine::get().truth.ranges_dropped.fetch_add(1);
        continue;
      }
      at = x_placed.emplace(row.key, next).first;
    }
    for (const auto& [id, value] : row.values)
      CounterData::set_value(x_image, x_image_size, at->second, id, value);
  }
  x_rows.clear();
  x_undecoded = 0;
  dropped = std::exchange(x_dropped, 0);
  return CUPTI_SUCCESS;
}

Placed RangeSession::execute(const Work& work, Stream& stream, uint64_t duration, double kept_bytes) {
  Machine& m = Machine::get();
  const size_t passes = kernel_replay() ? std::max(x_config.passes, 1u) : 1;
  const auto bytes = static_cast<uint64_t>(passes > 1 ? kept_bytes : 0);
  const uint64_t copy = copy_time(bytes, x_chip);
  Work run = work;
  const bool given_times = work.op.flags & CUPTISIM_GPU_TIMES;
  // What the profiler did on the way in has taken its time.
  uint64_t earliest = std::max(work.call_time, m.now()) + m.launch_latency();
  for (size_t pass = 0; pass < passes; ++pass) {
    // What the kernel overwrites is saved before the first pass and put back before every other.
    (pass == 0 ? m.truth.bytes_saved : m.truth.bytes_restored).fetch_add(bytes);
    if (pass > 0) m.truth.kernels_replayed.fetch_add(1);
    if (!given_times) {
      run.at.start = m.schedule(&x_context, stream, earliest + copy, duration, Overlap::kAllowed);
      run.at.end = run.at.start + duration;
      earliest = run.at.end + m.launch_latency();
    }
    count_in_samples(run);
  }
  return run.at;
}

// The counters are the GPU's: what was launched before a range and still runs on another stream is counted
// with it, by its part of the time. `since`: what was launched from then on is the range's own.
void RangeSession::add_running(uint64_t start, uint64_t end, uint64_t since,
                               const std::vector<uint32_t>& own_streams, std::vector<double>& sums) {
  for (const PlacedKernel& k : x_context.recent.during(start, end)) {
    if (k.launched >= since || std::ranges::count(own_streams, k.stream)) continue;
    const KernelCounters counters(k.op, static_cast<double>(k.end - k.start), x_chip);
    const double share = static_cast<double>(std::min(k.end, end) - std::max(k.start, start)) /
                         static_cast<double>(k.end - k.start);
    for (size_t i = 0; i < sums.size(); ++i) {
      const RawId id = x_config.entries[i].id;
      const auto kind = raws()[id].kind;
      if (in_pass(x_config.entries[i]) && kind != Raw::Kind::kElapsed && kind != Raw::Kind::kTime)
        sums[i] += counters.value(id) * share;
    }
  }
}

std::optional<CountedRun> RangeSession::run_kernel(const Work& work, Stream& stream, uint64_t duration) {
  const std::lock_guard lock(x_mutex);
  if (!x_started || x_range != CUPTI_AutoRange || x_process != this_process_id()) return std::nullopt;
  Machine& m = Machine::get();
  const bool timed = work.op.flags & (CUPTISIM_API_TIMES | CUPTISIM_GPU_TIMES);
  take_time("automatic range");
  invalidate_captures(&x_context);
  // A range holds one kernel, and the launch returns when it is done: launches under the profiler are
  // serialised. Nothing says that it waits for what was launched before.
  if (kernel_replay() && x_config.passes > 1 && communicates(work.op)) {
    // Its partner runs once and waits for nobody: the second pass never ends. A real GPU would hang for good.
    m.wait_until(m.now() + kHangNs);
    return CountedRun{{0, 0}, CUDA_ERROR_LAUNCH_TIMEOUT};
  }
  const auto longer = fault(CUPTISIM_FAULT_RANGE_TIME);
  const KernelCounters counters(work.op, static_cast<double>(duration + (longer ? longer->a : 0)), x_chip);
  const Placed at = execute(work, stream, duration, kept_bytes(counters));
  std::vector<double> values;
  for (const auto& e : x_config.entries) values.push_back(in_pass(e) ? counters.value(e.id) : 0);
  add_running(at.start, at.end, UINT64_MAX, {work.stream}, values);
  collect(x_level, std::to_string(x_kernels++), at.start, at.end, values);
  if (!timed) m.wait_until(at.end);
  // One activity record, of the last execution: that CUPTI gives no more must be confirmed on hardware.
  return CountedRun{at, CUDA_SUCCESS};
}

void RangeSession::add_to_ranges(const Work& work, const KernelCounters& counters) {
  const std::lock_guard lock(x_mutex);
  if (!x_started || x_open.size() < x_level) return;
  Open& o = x_open[x_level - 1u];
  if (!std::ranges::count(o.streams, work.stream)) o.streams.push_back(work.stream);
  o.end = std::max(o.end, work.at.end);
  for (size_t i = 0; i < o.sums.size(); ++i) {
    const RawId id = x_config.entries[i].id;
    const auto kind = raws()[id].kind;
    if (in_pass(x_config.entries[i]) && kind != Raw::Kind::kElapsed && kind != Raw::Kind::kTime)
      o.sums[i] += counters.value(id);
  }
}

}  // namespace sim
