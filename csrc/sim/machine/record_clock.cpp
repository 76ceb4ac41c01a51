#include "sim/machine/record_clock.h"

#include <cstddef>
#include <cstring>

namespace sim {
namespace {

// What a client's clock is ahead of the machine's. The same clock, as far as two readings can tell: nothing.
int64_t ahead(uint64_t before, uint64_t read, uint64_t after) {
  if (before <= read && read <= after) return 0;
  return static_cast<int64_t>(read - (before + (after - before) / 2));
}

constexpr uint64_t kSpoiled = 100'000'000'000'000;  // 1e14 ns

// Calls `visit` with the place of each time in a record and whether the GPU took it.
template <typename Visit>
void for_each_time(const CUpti_Activity* record, Visit visit) {
#define SIM_TIMES(type, from_gpu) visit(offsetof(type, start), from_gpu), visit(offsetof(type, end), from_gpu)
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      SIM_TIMES(CUpti_ActivityKernel10, true);
      visit(offsetof(CUpti_ActivityKernel10, completed), true);
      visit(offsetof(CUpti_ActivityKernel10, queued), false);
      visit(offsetof(CUpti_ActivityKernel10, submitted), false);
      return;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      SIM_TIMES(CUpti_ActivityMemcpy6, true);
      return;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      SIM_TIMES(CUpti_ActivityMemcpyPtoP4, true);
      return;
    case CUPTI_ACTIVITY_KIND_MEMSET:
      SIM_TIMES(CUpti_ActivityMemset4, true);
      return;
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      SIM_TIMES(CUpti_ActivityGraphTrace2, true);
      return;
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
      SIM_TIMES(CUpti_ActivityAPI, false);
      return;
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      SIM_TIMES(CUpti_ActivitySynchronization2, false);
      return;
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      SIM_TIMES(CUpti_ActivityOverhead3, false);
      return;
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
      return visit(offsetof(CUpti_ActivityCudaEvent2, deviceTimestamp), false);
    case CUPTI_ACTIVITY_KIND_MEMORY2:
      return visit(offsetof(CUpti_ActivityMemory4, timestamp), false);
    case CUPTI_ACTIVITY_KIND_ENVIRONMENT:
      return visit(offsetof(CUpti_ActivityEnvironment, timestamp), false);
    case CUPTI_ACTIVITY_KIND_MEMORY_POOL:
      return visit(offsetof(CUpti_ActivityMemoryPool3, timestamp), false);
    default:
      return;
  }
#undef SIM_TIMES
}

bool is_gpu_work(const CUpti_Activity* record) {
  bool gpu = false;
  for_each_time(record, [&gpu](size_t, bool from_gpu) { gpu = gpu || from_gpu; });
  return gpu;
}

}  // namespace

void RecordClock::reset(bool virtual_clock) {
  x_virtual = virtual_clock;
  x_function = nullptr;
  x_spoils = false;
  const uint64_t before = monotonic(), real = read_clock(CLOCK_REALTIME);
  x_offset = virtual_clock ? 0 : ahead(before, real, monotonic());
}

bool RecordClock::set(CUpti_TimestampCallbackFunc function) {
  if (x_virtual) return false;
  const uint64_t before = monotonic(), read = function();
  x_offset = ahead(before, read, monotonic());
  if (x_function.exchange(function)) x_spoils = true;
  return true;
}

uint64_t RecordClock::timestamp(uint64_t own) const {
  if (x_virtual) return own;
  const auto function = x_function.load();
  return function ? function() : read_clock(CLOCK_REALTIME);
}

void RecordClock::stamp(CUpti_Activity* record) {
  const auto offset = static_cast<uint64_t>(x_offset.load(std::memory_order_relaxed));
  const bool spoiled =
      x_spoils.load(std::memory_order_relaxed) && is_gpu_work(record) && x_spoils.exchange(false);
  if (offset == 0 && !spoiled) return;
  for_each_time(record, [&](size_t at, bool from_gpu) {
    uint64_t time;
    std::memcpy(&time, reinterpret_cast<char*>(record) + at, sizeof time);
    if (time == 0) return;
    time += offset + (spoiled && from_gpu ? kSpoiled : 0);
    std::memcpy(reinterpret_cast<char*>(record) + at, &time, sizeof time);
  });
}

}  // namespace sim
