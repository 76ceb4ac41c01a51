// Counters of the stand-in under many threads: launches into two contexts while one thread starts, stops and
// decodes range profilers, another samples the device and a third gives counters. For the sanitizers; ranges
// must add up.
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_range_profiler.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "sim/cuptisim.h"

namespace {

void* g_library = nullptr;

// The stand-in's function of this name and type.
#define FN(name) reinterpret_cast<decltype(&name)>(dlsym(g_library, #name))

void check(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "counter_stress: %s\n", what);
  std::exit(1);
}

#define CALL(function, Params, ...)                               \
  [&] {                                                           \
    Params params = {Params##_STRUCT_SIZE, nullptr, __VA_ARGS__}; \
    check(FN(function)(&params) == CUPTI_SUCCESS, #function);     \
    return params;                                                \
  }()

const char* g_metrics[] = {"sm__inst_executed.sum", "lts__t_sector_hit_rate.pct"};

std::vector<uint8_t> configuration(CUpti_ProfilerType type, size_t metrics) {
  auto* host =
      CALL(cuptiProfilerHostInitialize, CUpti_Profiler_Host_Initialize_Params, type, "GH100").pHostObject;
  CALL(cuptiProfilerHostConfigAddMetrics, CUpti_Profiler_Host_ConfigAddMetrics_Params, host, g_metrics,
       metrics);
  const size_t size =
      CALL(cuptiProfilerHostGetConfigImageSize, CUpti_Profiler_Host_GetConfigImageSize_Params, host)
          .configImageSize;
  std::vector<uint8_t> image(size);
  CALL(cuptiProfilerHostGetConfigImage, CUpti_Profiler_Host_GetConfigImage_Params, host, size, image.data());
  CALL(cuptiProfilerHostDeinitialize, CUpti_Profiler_Host_Deinitialize_Params, host);
  return image;
}

cuptisim_op kernel(const char* name, uint32_t context) {
  cuptisim_op op{};
  op.size = sizeof op;
  op.kind = CUPTISIM_OP_KERNEL;
  op.domain = 2;
  op.name = name;
  op.context = context;
  op.duration_ns = 500;
  return op;
}

CUcontext make_context(uint32_t id) {
  cuptisim_op op = kernel("warm up", id);
  check(FN(cuptisim_run)(&op, 1, nullptr) == 0, "warm up");
  CUcontext context = nullptr;
  check(FN(cuCtxGetCurrent)(&context) == CUDA_SUCCESS, "cuCtxGetCurrent");
  return context;
}

// Ranges decoded in `rounds` rounds of start and stop.
size_t profile_ranges(CUcontext context, CUpti_ProfilerRange range, int rounds) {
  constexpr size_t kRows = 100000;
  const auto config = configuration(CUPTI_PROFILER_TYPE_RANGE_PROFILER, 2);
  auto* object =
      CALL(cuptiRangeProfilerEnable, CUpti_RangeProfiler_Enable_Params, context).pRangeProfilerObject;
  std::vector<uint8_t> data(CALL(cuptiRangeProfilerGetCounterDataSize,
                                 CUpti_RangeProfiler_GetCounterDataSize_Params, object, g_metrics, 2, kRows,
                                 kRows)
                                .counterDataSize);
  CALL(cuptiRangeProfilerCounterDataImageInitialize, CUpti_RangeProfiler_CounterDataImage_Initialize_Params,
       object, data.size(), data.data());
  const auto replay = range == CUPTI_AutoRange ? CUPTI_KernelReplay : CUPTI_UserReplay;
  CALL(cuptiRangeProfilerSetConfig, CUpti_RangeProfiler_SetConfig_Params, object, config.size(),
       config.data(), data.size(), data.data(), range, replay, size_t{2000}, 1, 1);
  size_t dropped = 0;
  for (int i = 0; i < rounds; ++i) {
    CALL(cuptiRangeProfilerStart, CUpti_RangeProfiler_Start_Params, object);
    if (range == CUPTI_UserRange) {
      CALL(cuptiRangeProfilerPushRange, CUpti_RangeProfiler_PushRange_Params, object, "step");
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      CALL(cuptiRangeProfilerPopRange, CUpti_RangeProfiler_PopRange_Params, object);
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    CALL(cuptiRangeProfilerStop, CUpti_RangeProfiler_Stop_Params, object);
    dropped +=
        CALL(cuptiRangeProfilerDecodeData, CUpti_RangeProfiler_DecodeData_Params, object).numOfRangeDropped;
  }
  const size_t total = CALL(cuptiRangeProfilerGetCounterDataInfo,
                            CUpti_RangeProfiler_GetCounterDataInfo_Params, data.data(), data.size())
                           .numTotalRanges;
  CALL(cuptiRangeProfilerDisable, CUpti_RangeProfiler_Disable_Params, object);
  check(dropped == 0, "ranges were dropped");
  return total;
}

void sample(int rounds) {
  const auto config = configuration(CUPTI_PROFILER_TYPE_PM_SAMPLING, 1);
  auto* object = CALL(cuptiPmSamplingEnable, CUpti_PmSampling_Enable_Params, 0).pPmSamplingObject;
  std::vector<uint8_t> data(CALL(cuptiPmSamplingGetCounterDataSize,
                                 CUpti_PmSampling_GetCounterDataSize_Params, object, g_metrics, 1, 1000)
                                .counterDataSize);
  CALL(cuptiPmSamplingSetConfig, CUpti_PmSampling_SetConfig_Params, object, config.size(), config.data(),
       size_t{64} << 20, 20000, CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL,
       CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_LATEST);
  CALL(cuptiPmSamplingStart, CUpti_PmSampling_Start_Params, object);
  for (int i = 0; i < rounds; ++i) {
    CALL(cuptiPmSamplingCounterDataImageInitialize, CUpti_PmSampling_CounterDataImage_Initialize_Params,
         object, data.size(), data.data());
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    CALL(cuptiPmSamplingDecodeData, CUpti_PmSampling_DecodeData_Params, object, data.data(), data.size());
  }
  CALL(cuptiPmSamplingStop, CUpti_PmSampling_Stop_Params, object);
  CALL(cuptiPmSamplingDisable, CUpti_PmSampling_Disable_Params, object);
}

}  // namespace

int main(int argc, char** argv) {
  check(argc == 2, "usage: counter_stress libcupti_sim.so");
  g_library = dlopen(argv[1], RTLD_NOW);
  check(g_library != nullptr, "cannot load the stand-in");
  CALL(cuptiProfilerInitialize, CUpti_Profiler_Initialize_Params);
  const CUcontext first = make_context(1), second = make_context(2);
  std::atomic<bool> done{false};
  std::vector<std::thread> launchers;
  for (int i = 0; i < 8; ++i)
    launchers.emplace_back([&, i] {
      cuptisim_op op = kernel(i % 3 ? "gemm" : "copy", 1 + i % 2);
      while (!done.load(std::memory_order_relaxed)) check(FN(cuptisim_run)(&op, 1, nullptr) == 0, "launch");
    });
  size_t kernels = 0, steps = 0;
  std::thread automatic([&] { kernels = profile_ranges(first, CUPTI_AutoRange, 40); });
  std::thread user([&] { steps = profile_ranges(second, CUPTI_UserRange, 40); });
  std::thread sampler([] { sample(40); });
  std::thread giver([&] {
    for (int i = 0; i < 400; ++i) FN(cuptisim_set_counter)(i % 2 ? "gemm" : nullptr, "sm__inst_executed", i);
    FN(cuptisim_clear_counters)();
  });
  for (std::thread* t : {&automatic, &user, &sampler, &giver}) t->join();
  done = true;
  for (auto& t : launchers) t.join();
  cuptisim_truth truth{};
  truth.size = sizeof truth;
  FN(cuptisim_get_truth)(&truth);
  // A user range of two passes is collected twice and is one row.
  check(steps == 20 && kernels > 0 && truth.ranges_collected == kernels + 2 * steps, "ranges do not add up");
  check(truth.samples_produced > 0, "nothing was sampled");
  std::printf("%zu kernels counted, %zu user ranges, %llu samples\n", kernels, steps,
              static_cast<unsigned long long>(truth.samples_produced));
  return 0;
}
