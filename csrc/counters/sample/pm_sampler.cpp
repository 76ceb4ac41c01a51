#include "counters/sample/pm_sampler.h"
#include "counters/strategy/profiler_setup.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "cupti/call.h"

namespace cuptiprof {
namespace {

// A slot of the image takes some 16 KB, and all of it is cleared after each look: room for three of them.
constexpr auto kDecodeEvery = std::chrono::milliseconds(25);
constexpr uint64_t kPeriods = 3, kFewestSlots = 64, kMostSlots = 4096;
constexpr uint32_t kFillsAtATime = 16;  // then others have the thread, and a stop is seen
constexpr auto kLastDrain = std::chrono::seconds(2);
constexpr uint32_t kMaxFailures = 3;

}  // namespace

PmSampler::PmSampler(std::shared_ptr<const Api> api, CounterOptions options)
    : CounterStrategy(std::move(api), std::move(options)),
      x_host(x_api, x_options.chip, ProfilerType::kSampling),
      x_config(x_options.groups.front()),
      x_window(!x_options.waits_for_window),
      x_window_times(!x_options.waits_for_window) {
  if (!x_api->cuptiPmSamplingEnable)
    throw Error(ErrorKind::kMetric, "sampling needs libcupti of CUDA 12.6 or newer",
                "pip install 'nvidia-cuda-cupti==13.0.*', or use another strategy");
}

PmSampler::~PmSampler() { finish({}); }

void PmSampler::open(Device& d) {
  const Api& a = *x_api;
  CUpti_PmSampling_Enable_Params enable{};
  enable.structSize = CUpti_PmSampling_Enable_Params_STRUCT_SIZE;
  enable.deviceIndex = d.ordinal;
  check(a, a.cuptiPmSamplingEnable(&enable), "cuptiPmSamplingEnable", "device " + std::to_string(d.ordinal));
  d.object = enable.pPmSamplingObject;

  CUpti_PmSampling_SetConfig_Params set{};
  set.structSize = CUpti_PmSampling_SetConfig_Params_STRUCT_SIZE;
  set.pPmSamplingObject = d.object;
  set.configSize = x_config.group->image.size();
  set.pConfig = x_config.group->image.data();
  set.hardwareBufferSize = x_options.hardware_buffer;
  set.samplingInterval = x_options.interval;
  set.triggerMode = x_options.interval_in_cycles ? CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL
                                                 : CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL;
  set.hwBufferAppendMode = x_options.keep_latest ? CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_LATEST
                                                 : CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST;
  CUptiResult rc = a.cuptiPmSamplingSetConfig(&set);
  if (rc == CUPTI_ERROR_INVALID_PARAMETER) {
    // CUDA 12.6 knows no append mode, and refuses a struct that has one.
    set.structSize = offsetof(CUpti_PmSampling_SetConfig_Params, hwBufferAppendMode);
    rc = a.cuptiPmSamplingSetConfig(&set);
  }
  d.ring = x_options.keep_latest && set.structSize == CUpti_PmSampling_SetConfig_Params_STRUCT_SIZE;
  check(a, rc, "cuptiPmSamplingSetConfig", "device " + std::to_string(d.ordinal));

  CUpti_PmSampling_GetCounterDataSize_Params size{};
  size.structSize = CUpti_PmSampling_GetCounterDataSize_Params_STRUCT_SIZE;
  size.pPmSamplingObject = d.object;
  size.pMetricNames = const_cast<const char**>(x_config.names.data());
  size.numMetrics = x_config.names.size();
  const auto period = static_cast<uint64_t>(std::chrono::nanoseconds(kDecodeEvery).count());
  size.maxSamples = static_cast<uint32_t>(
      std::clamp(kPeriods * period / std::max<uint64_t>(x_options.interval, 1), kFewestSlots, kMostSlots));
  check(a, a.cuptiPmSamplingGetCounterDataSize(&size), "cuptiPmSamplingGetCounterDataSize");
  d.image.resize(size.counterDataSize);
  check(a, clear_image(d), "cuptiPmSamplingCounterDataImageInitialize");
}

CUptiResult PmSampler::clear_image(Device& d) noexcept {
  CUpti_PmSampling_CounterDataImage_Initialize_Params p{};
  p.structSize = CUpti_PmSampling_CounterDataImage_Initialize_Params_STRUCT_SIZE;
  p.pPmSamplingObject = d.object;
  p.counterDataSize = d.image.size();
  p.pCounterData = d.image.data();
  return x_api->cuptiPmSamplingCounterDataImageInitialize(&p);
}

bool PmSampler::start(Device& d) noexcept {
  CUpti_PmSampling_Start_Params p{};
  p.structSize = CUpti_PmSampling_Start_Params_STRUCT_SIZE;
  p.pPmSamplingObject = d.object;
  const CUptiResult rc = x_api->cuptiPmSamplingStart(&p);
  if (rc != CUPTI_SUCCESS) {
    x_events.fail(rc, "cuptiPmSamplingStart");
    return false;
  }
  d.started = d.drop_first = true;
  d.last_end = 0;
  return true;
}

void PmSampler::close(Device& d) noexcept {
  stop(d);
  if (!d.object) return;
  CUpti_PmSampling_Disable_Params p{};
  p.structSize = CUpti_PmSampling_Disable_Params_STRUCT_SIZE;
  p.pPmSamplingObject = d.object;
  x_api->cuptiPmSamplingDisable(&p);
  d.object = nullptr;
}

// Without reading what is left.
void PmSampler::halt(Device& d) noexcept {
  CUpti_PmSampling_Stop_Params p{};
  p.structSize = CUpti_PmSampling_Stop_Params_STRUCT_SIZE;
  p.pPmSamplingObject = d.object;
  x_api->cuptiPmSamplingStop(&p);
  d.started = false;
  d.given_up = true;
}

void PmSampler::stop(Device& d) noexcept {
  if (!d.started) return;
  CUpti_PmSampling_Stop_Params p{};
  p.structSize = CUpti_PmSampling_Stop_Params_STRUCT_SIZE;
  p.pPmSamplingObject = d.object;
  if (const CUptiResult rc = x_api->cuptiPmSamplingStop(&p); rc != CUPTI_SUCCESS)
    x_events.fail(rc, "cuptiPmSamplingStop", 0);
  d.started = false;
  drain(d);
}

void PmSampler::add(uint32_t ordinal) {
  Device& d = x_devices.emplace_back();
  d.ordinal = ordinal;
  try {
    // The samples' clock is CUPTI's; records were put on the run clock. Two readings around one of the other.
    uint64_t theirs = 0;
    const int64_t before = now_ns();
    check(*x_api, x_api->cuptiGetTimestamp(&theirs), "cuptiGetTimestamp");
    if (!x_api->simulated) d.to_run_clock = (before + now_ns()) / 2 - static_cast<int64_t>(theirs);
    if (const std::string chip = chip_name(*x_api, ordinal); chip != x_options.chip)
      throw Error(ErrorKind::kMetric,
                  "device " + std::to_string(ordinal) + " is a " + chip + ", not a " + x_options.chip,
                  "one session samples devices of one chip");
    open(d);
    if (!start(d))
      check(*x_api, static_cast<CUptiResult>(x_events.error.load()), "cuptiPmSamplingStart",
            "device " + std::to_string(ordinal));
  } catch (...) {
    close(d);
    d.given_up = true;
    throw;
  }
}

// Devices in which contexts of the process launched work; the one that is current, or the first, before any
// has.
std::vector<uint32_t> PmSampler::devices_in_use() const {
  std::vector<uint32_t> out = x_options.devices;
  if (!out.empty() || !x_options.contexts || !x_api->cuptiGetDeviceId) return out;
  for (CUcontext context : x_options.contexts()) {
    uint32_t ordinal = 0;
    if (x_api->cuptiGetDeviceId(context, &ordinal) != CUPTI_SUCCESS) continue;
    if (std::find(out.begin(), out.end(), ordinal) == out.end()) out.push_back(ordinal);
  }
  return out;
}

void PmSampler::begin() {
  const std::lock_guard lock(x_mutex);
  try {
    std::vector<uint32_t> devices = devices_in_use();
    if (CUcontext current = nullptr; devices.empty() && x_api->cuCtxGetCurrent && x_api->cuptiGetDeviceId &&
                                     x_api->cuCtxGetCurrent(&current) == CUDA_SUCCESS && current)
      if (uint32_t ordinal = 0; x_api->cuptiGetDeviceId(current, &ordinal) == CUPTI_SUCCESS)
        devices.push_back(ordinal);
    if (devices.empty()) devices.push_back(0);
    for (const uint32_t ordinal : devices) add(ordinal);
  } catch (...) {
    for (Device& d : x_devices) close(d);
    x_devices.clear();
    throw;
  }
  x_thread = std::thread([this] { run(); });
}

// A device that the process began to use after the session started is sampled from then on.
void PmSampler::look_for_devices() noexcept try {
  for (const uint32_t ordinal : devices_in_use())
    if (std::none_of(x_devices.begin(), x_devices.end(),
                     [&](const Device& d) { return d.ordinal == ordinal; }))
      add(ordinal);
} catch (const Error&) {
  x_events.fail(CUPTI_ERROR_NOT_SUPPORTED, "cuptiPmSamplingEnable", 0);
} catch (...) {
  x_events.fail(CUPTI_ERROR_OUT_OF_MEMORY, "cuptiPmSamplingEnable", 0);
}

void PmSampler::apply() noexcept {
  const bool wanted = x_on && x_window.load();
  for (Device& d : x_devices) {
    if (d.started && !wanted) stop(d);
    if (!d.started && wanted && d.object && !d.given_up && !start(d))
      d.given_up = ++d.failures >= kMaxFailures;
  }
}

void PmSampler::run() {
  pthread_setname_np(pthread_self(), "cuptiprof-pm");
  std::unique_lock lock(x_mutex);
  while (!x_stopping) {
    x_wake.wait_for(lock, kDecodeEvery);
    if (x_stopping) break;
    apply();
    if (x_on && x_window.load()) look_for_devices();
    for (Device& d : x_devices)
      if (d.started) drain(d);
  }
}

void PmSampler::drain(Device& d) noexcept {
  // While it samples more may always come; after a stop it ends with the last record.
  const auto deadline = std::chrono::steady_clock::now() + kLastDrain;
  for (uint32_t fills = 0; decode(d); ++fills) {
    if (d.started && fills == kFillsAtATime) return;
    if (!d.started && std::chrono::steady_clock::now() >= deadline) {
      x_events.unread.fetch_add(1);
      return;
    }
  }
}

void PmSampler::restart(Device& d) noexcept {
  CUpti_PmSampling_Stop_Params p{};
  p.structSize = CUpti_PmSampling_Stop_Params_STRUCT_SIZE;
  p.pPmSamplingObject = d.object;
  x_api->cuptiPmSamplingStop(&p);
  d.started = false;
  start(d);
}

// True: the image was full, there may be more.
bool PmSampler::decode(Device& d) noexcept {
  CUpti_PmSampling_DecodeData_Params p{};
  p.structSize = CUpti_PmSampling_DecodeData_Params_STRUCT_SIZE;
  p.pPmSamplingObject = d.object;
  p.pCounterDataImage = d.image.data();
  p.counterDataImageSize = d.image.size();
  const CUptiResult rc = x_api->cuptiPmSamplingDecodeData(&p);
  const bool overflowed = p.overflow || rc == CUPTI_ERROR_OUT_OF_MEMORY;
  if (overflowed) {
    x_events.overflows.fetch_add(1);
  } else if (rc != CUPTI_SUCCESS) {
    x_events.fail(rc, "cuptiPmSamplingDecodeData");
    if (++d.failures >= kMaxFailures) halt(d);
    return false;
  }
  CUpti_PmSampling_GetCounterDataInfo_Params info{};
  info.structSize = CUpti_PmSampling_GetCounterDataInfo_Params_STRUCT_SIZE;
  info.pCounterDataImage = d.image.data();
  info.counterDataImageSize = d.image.size();
  const bool known = x_api->cuptiPmSamplingGetCounterDataInfo(&info) == CUPTI_SUCCESS;
  // Where the buffer is not a ring the GPU stopped writing; and a ring that overflowed may give nothing for
  // good.
  if (overflowed && d.started && (!d.ring || !known || info.numCompletedSamples == 0)) restart(d);
  if (!known || info.numCompletedSamples == 0) return false;
  for (size_t i = 0; i < info.numCompletedSamples; ++i) add_sample(d, i);
  if (clear_image(d) != CUPTI_SUCCESS) return false;
  return p.decodeStopReason == CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL;
}

void PmSampler::add_sample(Device& d, size_t index) noexcept try {
  CUpti_PmSampling_CounterData_GetSampleInfo_Params p{};
  p.structSize = CUpti_PmSampling_CounterData_GetSampleInfo_Params_STRUCT_SIZE;
  p.pPmSamplingObject = d.object;
  p.pCounterDataImage = d.image.data();
  p.counterDataImageSize = d.image.size();
  p.sampleIndex = index;
  if (const CUptiResult rc = x_api->cuptiPmSamplingCounterDataGetSampleInfo(&p); rc != CUPTI_SUCCESS)
    return x_events.fail(rc, "cuptiPmSamplingCounterDataGetSampleInfo");
  // Slots that were begun and not filled have no time; what is missing shows as a gap before the next.
  if (p.startTimestamp == 0 || p.endTimestamp <= p.startTimestamp) return;
  CounterRow row;
  row.kind = RangeKind::kSample;
  row.start = static_cast<int64_t>(p.startTimestamp) + d.to_run_clock;
  row.end = static_cast<int64_t>(p.endTimestamp) + d.to_run_clock;
  // Samples follow each other: a gap is what the ring overwrote before it was read.
  if (const int64_t length = row.end - row.start; d.last_end != 0 && length > 0 && row.start > d.last_end)
    x_events.overwritten.fetch_add(static_cast<uint64_t>((row.start - d.last_end + length / 2) / length));
  d.last_end = row.end;
  if (std::exchange(d.drop_first, false) || !x_window_times.is_open(row.start)) return;
  row.device = d.ordinal;
  row.passes = 1;
  x_values.assign(x_config.names.size(), std::nan(""));
  x_host.evaluate(d.image, index, x_config.names, x_values);
  x_events.no_room.fetch_add(x_rows.add(row, x_values));
} catch (...) {
  x_events.fail(CUPTI_ERROR_UNKNOWN, "cuptiProfilerHostEvaluateToGpuValues");
}

void PmSampler::pause(Deadline) noexcept {
  const std::lock_guard lock(x_mutex);
  x_on = false;
  apply();
}

void PmSampler::resume() noexcept {
  const std::lock_guard lock(x_mutex);
  x_on = true;
  apply();
}

void PmSampler::complete(Deadline) noexcept {
  const std::lock_guard lock(x_mutex);
  for (Device& d : x_devices)
    if (d.started) drain(d);
}

bool PmSampler::finish(Deadline) noexcept {
  {
    const std::lock_guard lock(x_mutex);
    x_stopping = true;
  }
  x_wake.notify_all();
  if (x_thread.joinable()) x_thread.join();
  const std::lock_guard lock(x_mutex);
  for (Device& d : x_devices) close(d);
  x_devices.clear();
  return true;
}

}  // namespace cuptiprof
