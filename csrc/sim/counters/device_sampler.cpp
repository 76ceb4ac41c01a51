#include "sim/counters/device_sampler.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/counters/counting.h"
#include "sim/counters/metric_eval.h"
#include "sim/counters/profiler_objects.h"
#include "sim/machine/faults.h"

namespace sim {
namespace {

constexpr size_t kSampleBytes = 6 * 1024;  // of hardware buffer, for occupancy, IPC and DRAM

constexpr uint32_t kEmptyAtStop = 2;  // records without a duration that a stop leaves behind

}  // namespace

CUptiResult Sampler::data_size(CUpti_PmSampling_GetCounterDataSize_Params& p) {
  const std::lock_guard lock(x_mutex);
  if (!p.pMetricNames || !p.numMetrics || !p.maxSamples) return CUPTI_ERROR_INVALID_PARAMETER;
  const auto ids = raws_of_metrics(p.pMetricNames, p.numMetrics, cupti_chip_of(x_chip), Profiler::kSampling);
  if (!ids) return CUPTI_ERROR_INVALID_PARAMETER;
  x_data_ids = *ids;
  x_data_rows = p.maxSamples;
  p.counterDataSize = CounterData::bytes(x_data_ids.size(), x_data_rows);
  return CUPTI_SUCCESS;
}

CUptiResult Sampler::initialize_data(CUpti_PmSampling_CounterDataImage_Initialize_Params& p) {
  const std::lock_guard lock(x_mutex);
  if (x_data_rows == 0) return CUPTI_ERROR_INVALID_OPERATION;
  return CounterData::initialize(p.pCounterData, p.counterDataSize, x_chip, Profiler::kSampling, x_data_ids,
                                 x_data_rows)
             ? CUPTI_SUCCESS
             : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult Sampler::configure(const CUpti_PmSampling_SetConfig_Params& p) {
  const std::lock_guard lock(x_mutex);
  if (x_started) return CUPTI_ERROR_INVALID_OPERATION;
  CounterConfig config;
  if (!read_config(p.pConfig, p.configSize, config) || config.profiler != Profiler::kSampling ||
      config.chip != cupti_chip_of(x_chip) || p.samplingInterval == 0 ||
      p.hardwareBufferSize < kSampleBytes || p.triggerMode < 0 ||
      p.triggerMode >= CUPTI_PM_SAMPLING_TRIGGER_MODE_COUNT)
    return CUPTI_ERROR_INVALID_PARAMETER;
  if (config.passes > 1) return CUPTI_ERROR_NOT_SUPPORTED;
  const bool by_time = p.triggerMode == CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL;
  if (by_time && config.chip <= kGa100) return CUPTI_ERROR_NOT_SUPPORTED;
  x_config = std::move(config);
  x_interval = by_time ? p.samplingInterval
                       : static_cast<uint64_t>(std::llround(static_cast<double>(p.samplingInterval) /
                                                            clock_of(Unit::kSys, x_chip)));
  x_interval = std::max<uint64_t>(x_interval, 1);
  x_capacity = p.hardwareBufferSize / kSampleBytes;
  x_keep_latest = p.hwBufferAppendMode == CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_LATEST;
  x_stuck = x_was_full = false;
  x_tail = 0;
  x_buffer.clear(), x_kernels.clear(), x_unsampled.clear();
  x_before.assign(x_config.entries.size(), 0.0);
  x_overflow = false;
  if (!std::exchange(x_configured, true)) g_configured_samplers.fetch_add(1);
  Machine::get().truth.counter_configs.fetch_add(1);
  return CUPTI_SUCCESS;
}

CUptiResult Sampler::start() {
  const std::lock_guard lock(x_mutex);
  if (!x_configured || x_started) return CUPTI_ERROR_INVALID_OPERATION;
  x_stuck = x_overflow = x_was_full = false;
  x_tail = 0;
  x_first = x_next = Machine::get().now();
  fold_unsampled(x_next);
  for (Kernel& k : x_unsampled) {  // still running, or not begun
    const double share = k.start >= x_next
                             ? 0.0
                             : static_cast<double>(x_next - k.start) / static_cast<double>(k.end - k.start);
    for (size_t i = 0; i < k.sums.size(); ++i) x_before[i] += k.sums[i] * share;
    x_kernels.push_back(std::move(k));
  }
  x_unsampled.clear();
  x_started = true;
  g_started_samplers.fetch_add(1);
  g_counting.fetch_add(1);
  return CUPTI_SUCCESS;
}

CUptiResult Sampler::stop() {
  const std::lock_guard lock(x_mutex);
  if (!x_started) return CUPTI_ERROR_INVALID_OPERATION;
  sample_until(Machine::get().now());
  x_tail = kEmptyAtStop;
  x_started = false;
  g_started_samplers.fetch_sub(1);
  g_counting.fetch_sub(1);
  return CUPTI_SUCCESS;
}

void Sampler::shut_down() {
  const std::lock_guard lock(x_mutex);
  if (x_started) g_counting.fetch_sub(1), g_started_samplers.fetch_sub(1);
  if (x_configured) g_configured_samplers.fetch_sub(1);
  x_configured = x_started = false;
}

// The hardware samples by itself; what it did since the last look follows from the clock.
void Sampler::sample_until(uint64_t now) {
  if (now < x_next) return;
  auto& truth = Machine::get().truth;
  const uint64_t fresh = (now - x_next) / x_interval;
  uint64_t lost = 0, first = 0, end = fresh;  // of the fresh ones, those that stay
  if (x_keep_latest) {
    first = fresh > x_capacity ? fresh - x_capacity : 0;
    lost = first;
    while (!x_buffer.empty() && x_buffer.size() + (end - first) > x_capacity) {
      x_buffer.pop_front();
      ++lost;
    }
  } else {
    end = std::min<uint64_t>(fresh, x_capacity - x_buffer.size());
    lost = fresh - end;
    if (lost) x_overflow = true;
  }
  for (uint64_t i = first; i < end; ++i) x_buffer.push_back(x_next + i * x_interval);
  x_next += fresh * x_interval;
  truth.samples_produced.fetch_add(fresh);
  truth.samples_lost.fetch_add(lost);
}

void Sampler::add_kernel(const Work& work) {
  const std::lock_guard lock(x_mutex);
  if (!x_configured || work.at.end <= work.at.start) return;
  const KernelCounters counters(work.op, static_cast<double>(work.at.end - work.at.start), x_chip);
  Kernel k{work.at.start, work.at.end, {}};
  for (const auto& e : x_config.entries) k.sums.push_back(counters.value(e.id));
  (x_started ? x_kernels : x_unsampled).push_back(std::move(k));
  if (!x_started) fold_unsampled(Machine::get().now());
}

// Of what was not sampled, only the sums of what has ended are kept.
void Sampler::fold_unsampled(uint64_t now) {
  std::erase_if(x_unsampled, [&](const Kernel& k) {
    if (k.end > now) return false;
    for (size_t i = 0; i < k.sums.size(); ++i) x_before[i] += k.sums[i];
    return true;
  });
}

// A kernel's counts are spread evenly over its time; a unit's clock and the GPU's time never stand still.
std::vector<double> Sampler::values_of(uint64_t start, uint64_t end) const {
  auto out = start == x_first ? x_before : std::vector<double>(x_config.entries.size());
  for (const Kernel& k : x_kernels) {
    if (k.start >= end) break;  // sorted
    if (k.end <= start) continue;
    const auto overlap = static_cast<double>(std::min(k.end, end) - std::max(k.start, start));
    const double share = overlap / static_cast<double>(k.end - k.start);
    for (size_t i = 0; i < out.size(); ++i) out[i] += k.sums[i] * share;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    const Raw& r = raws()[x_config.entries[i].id];
    if (r.kind == Raw::Kind::kElapsed || r.kind == Raw::Kind::kTime)
      out[i] = elapsed_value(r, static_cast<double>(end - start), x_chip);
  }
  return out;
}

void Sampler::forget_kernels() {
  const uint64_t needed = x_buffer.empty() ? x_next : x_buffer.front();
  std::erase_if(x_kernels, [needed](const Kernel& k) { return k.end <= needed; });
}

CUptiResult Sampler::decode(CUpti_PmSampling_DecodeData_Params& p) {
  const std::lock_guard lock(x_mutex);
  if (!x_configured) return CUPTI_ERROR_INVALID_OPERATION;
  const CounterData data(p.pCounterDataImage, p.counterDataImageSize);
  if (!data.valid() || data.profiler() != Profiler::kSampling) return CUPTI_ERROR_INVALID_PARAMETER;
  if (x_started) sample_until(Machine::get().now());
  p.decodeStopReason = CUPTI_PM_SAMPLING_DECODE_STOP_REASON_END_OF_RECORDS;
  if (x_stuck || x_overflow || (x_started && strikes(CUPTISIM_FAULT_SAMPLER_STUCK))) {
    p.overflow = std::exchange(x_overflow, false);
    x_stuck = true;
    Machine::get().truth.samples_lost.fetch_add(x_buffer.size());
    x_buffer.clear();
    return CUPTI_ERROR_OUT_OF_MEMORY;
  }
  forget_kernels();
  std::sort(x_kernels.begin(), x_kernels.end(),
            [](const Kernel& a, const Kernel& b) { return a.start < b.start; });
  if (std::exchange(x_was_full, false) && !x_buffer.empty() &&
      CounterData::add_row(p.pCounterDataImage, p.counterDataImageSize, "", 0, 0)) {
    x_buffer.pop_front();
    Machine::get().truth.samples_lost.fetch_add(1);
  }
  while (!x_buffer.empty()) {
    const uint64_t start = x_buffer.front(), end = start + x_interval;
    const size_t row = data.rows();
    if (!CounterData::add_row(p.pCounterDataImage, p.counterDataImageSize, "", start, end)) {
      p.decodeStopReason = CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL;
      x_was_full = true;
      break;
    }
    const auto values = values_of(start, end);
    if (start >= x_first) std::ranges::fill(x_before, 0.0);  // had, or overwritten with its sample
    for (size_t i = 0; i < values.size(); ++i)
      CounterData::set_value(p.pCounterDataImage, p.counterDataImageSize, row, x_config.entries[i].id,
                             values[i]);
    x_buffer.pop_front();
    // Kernels that ended before the next sample are done with: each sample looks at few.
    while (!x_kernels.empty() && x_kernels.front().end <= end) x_kernels.pop_front();
  }
  while (x_tail != 0 && x_buffer.empty() &&
         CounterData::add_row(p.pCounterDataImage, p.counterDataImageSize, "", x_next, x_next))
    --x_tail;
  if (x_tail != 0 || (!x_started && fault(CUPTISIM_FAULT_SAMPLER_ENDLESS))) {
    p.decodeStopReason = CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL;
    if (x_tail == 0) CounterData::add_row(p.pCounterDataImage, p.counterDataImageSize, "", 0, 0);
  }
  return CUPTI_SUCCESS;
}

void count_in_samples(const Work& work) {
  if (const auto sampler = samplers().of(work.context.device)) sampler->add_kernel(work);
}

}  // namespace sim
