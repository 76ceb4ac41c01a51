// Activity records: kinds, per-thread buffers, the delivering thread, flushes, iteration.
#include <cupti_activity.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <random>
#include <thread>

#include "layout.h"
#include "machine.h"

namespace sim {
namespace {

struct Buffer {
  uint8_t* data = nullptr;
  size_t size = 0;
  size_t used = 0;
  uint64_t complete_at = 0;  // when the last piece of work in it ends
};

struct Held {  // a late record
  std::vector<uint8_t> bytes;
  uint64_t complete_at;
  uint64_t after;
};

struct ThreadBuffer {
  std::mutex mutex;  // guards the rest; as in the real library it is held while a buffer is requested
  Buffer buffer;
  std::vector<Held> held;
  uint64_t written = 0;
};

std::atomic<bool> g_kinds[CUPTI_ACTIVITY_KIND_COUNT];
std::mutex g_api_mutex;  // guards the two sets
std::unordered_set<uint32_t> g_only_runtime, g_only_driver;
std::atomic<CUpti_BuffersCallbackRequestFunc> g_request{nullptr};
std::atomic<CUpti_BuffersCallbackCompleteFunc> g_complete{nullptr};
std::atomic<uint64_t> g_dropped{0};
std::atomic<uint32_t> g_outstanding{0};

std::mutex g_threads_mutex;  // guards g_threads
std::vector<std::shared_ptr<ThreadBuffer>>& threads() {
  static auto* list = new std::vector<std::shared_ptr<ThreadBuffer>>;
  return *list;
}

thread_local std::shared_ptr<ThreadBuffer> t_buffer;

struct ExternalIds {
  std::vector<uint64_t> stack[CUPTI_EXTERNAL_CORRELATION_KIND_SIZE];
};
thread_local ExternalIds t_external;

// Full buffers on their way to the profiler, delivered by a thread of the library's own.
class Worker {
 public:
  static Worker& get() {
    static Worker* w = new Worker;
    return *w;
  }
  void give(Buffer b) {
    const std::lock_guard lock(x_mutex);
    x_full.push_back(b);
    if (!x_running) {
      x_running = true;
      std::thread([this] { loop(); }).detach();
    }
    x_changed.notify_all();
  }
  // Everything that is complete by now (or all of it), in the calling thread.
  void drain(uint64_t now, bool all, void (*deliver)(Buffer&)) {
    std::unique_lock lock(x_mutex);
    x_changed.wait(lock, [this] { return !x_busy; });
    std::deque<Buffer> ready, later;
    for (Buffer& b : x_full) (all || b.complete_at <= now ? ready : later).push_back(b);
    x_full.swap(later);
    lock.unlock();
    for (Buffer& b : ready) deliver(b);
  }

 private:
  void loop();
  std::mutex x_mutex;  // guards the members
  std::condition_variable x_changed;
  std::deque<Buffer> x_full;
  bool x_running = false;
  bool x_busy = false;
};

void shuffle(Buffer& b, uint64_t window) {
  std::vector<std::vector<uint8_t>> records;
  for (size_t at = 0; at < b.used;) {
    const size_t n = stride(reinterpret_cast<CUpti_Activity*>(b.data + at)->kind, Machine::get().version());
    if (n == 0 || at + n > b.used) return;
    records.emplace_back(b.data + at, b.data + at + n);
    at += n;
  }
  std::mt19937_64 random(Machine::get().seed.fetch_add(1));
  for (size_t i = 0; i < records.size(); i += window)
    std::shuffle(records.begin() + static_cast<ptrdiff_t>(i),
                 records.begin() + static_cast<ptrdiff_t>(std::min<size_t>(i + window, records.size())),
                 random);
  size_t at = 0;
  for (const auto& r : records) {
    std::memcpy(b.data + at, r.data(), r.size());
    at += r.size();
  }
}

void deliver(Buffer& b) {
  Machine& m = Machine::get();
  if (const Fault* f = m.fault(CUPTISIM_FAULT_SHUFFLE)) shuffle(b, std::max<uint64_t>(f->a, 2));
  m.truth.buffers_completed.fetch_add(1);
  g_outstanding.fetch_sub(1);
  if (const auto complete = g_complete.load()) complete(nullptr, 0, b.data, b.size, b.used);
}

void Worker::loop() {
  std::unique_lock lock(x_mutex);
  for (;;) {
    const uint64_t now = Machine::get().now();
    const auto ready =
        std::find_if(x_full.begin(), x_full.end(), [now](const Buffer& b) { return b.complete_at <= now; });
    if (ready == x_full.end()) {
      // The GPU may finish without anybody telling us: look again soon.
      x_full.empty() ? x_changed.wait(lock)
                     : static_cast<void>(x_changed.wait_for(lock, std::chrono::milliseconds(1)));
      continue;
    }
    Buffer b = *ready;
    x_full.erase(ready);
    x_busy = true;
    lock.unlock();
    if (const Fault* f = Machine::get().fault(CUPTISIM_FAULT_SLOW_WORKER)) {
      const timespec pause{static_cast<time_t>(f->a / 1000000000ull),
                           static_cast<long>(f->a % 1000000000ull)};
      nanosleep(&pause, nullptr);
    }
    deliver(b);
    lock.lock();
    x_busy = false;
    x_changed.notify_all();
  }
}

ThreadBuffer& this_buffer() {
  if (!t_buffer) {
    t_buffer = std::make_shared<ThreadBuffer>();
    const std::lock_guard lock(g_threads_mutex);
    // Threads that ended with nothing left in their buffer are forgotten here.
    std::erase_if(threads(),
                  [](const auto& t) { return t.use_count() == 1 && !t->buffer.data && t->held.empty(); });
    threads().push_back(t_buffer);
  }
  return *t_buffer;
}

bool is_kernel(const void* record) {
  const auto kind = static_cast<const CUpti_Activity*>(record)->kind;
  return kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || kind == CUPTI_ACTIVITY_KIND_KERNEL;
}

void drop(const void* record) {
  Machine& m = Machine::get();
  g_dropped.fetch_add(1);
  m.truth.records_dropped.fetch_add(1);
  if (is_kernel(record)) m.truth.kernel_records_dropped.fetch_add(1);
}

// What the library itself took to get a buffer, as the first record in it.
void write_request_overhead(ThreadBuffer& t, uint64_t asked_at) {
  CUpti_ActivityOverhead3 r{};
  r.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
  r.overheadKind = CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST;
  r.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
  r.objectId.pt.processId = static_cast<uint32_t>(getpid());
  r.objectId.pt.threadId = this_thread_id();
  r.start = asked_at;
  r.end = Machine::get().now();
  const size_t n = stride(r.kind, Machine::get().version());
  if (n > t.buffer.size) return;
  std::memcpy(t.buffer.data, &r, n);
  t.buffer.used = n;
  Machine::get().truth.records_written.fetch_add(1, std::memory_order_relaxed);
}

void append(ThreadBuffer& t, const void* record, size_t bytes, uint64_t complete_at) {
  Machine& m = Machine::get();
  const auto kind = static_cast<const CUpti_Activity*>(record)->kind;
  const size_t n = stride(kind, m.version());
  Buffer& b = t.buffer;
  if (b.data && b.used + n > b.size) {
    Worker::get().give(b);
    b = {};
  }
  if (!b.data) {
    const auto request = g_request.load(std::memory_order_relaxed);
    const uint64_t asked_at = m.now();
    size_t max_records = 0;
    if (request) request(&b.data, &b.size, &max_records);
    m.truth.buffers_requested.fetch_add(1, std::memory_order_relaxed);
    if (!b.data || b.size < n) {
      if (b.data) {
        g_outstanding.fetch_add(1);
        Worker::get().give(b);
      }
      b = {};
      return drop(record);
    }
    b.used = 0;
    b.complete_at = 0;
    g_outstanding.fetch_add(1);
    if (kind_enabled(CUPTI_ACTIVITY_KIND_OVERHEAD)) write_request_overhead(t, asked_at);
  }
  std::memcpy(b.data + b.used, record, std::min(bytes, n));
  if (bytes < n) std::memset(b.data + b.used + bytes, 0, n - bytes);
  b.used += n;
  b.complete_at = std::max(b.complete_at, complete_at);
  ++t.written;
  m.truth.records_written.fetch_add(1, std::memory_order_relaxed);
  if (is_kernel(record)) m.truth.kernel_records_written.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

bool kind_enabled(CUpti_ActivityKind kind) { return g_kinds[kind].load(std::memory_order_relaxed); }

bool activity_in_use() {
  for (auto& k : g_kinds)
    if (k.load()) return true;
  return false;
}

uint32_t buffers_outstanding() { return g_outstanding.load(); }

bool api_record_wanted(bool driver, CUpti_CallbackId cbid) {
  const auto kind = driver ? CUPTI_ACTIVITY_KIND_DRIVER : CUPTI_ACTIVITY_KIND_RUNTIME;
  if (kind_enabled(kind)) return true;
  const std::lock_guard lock(g_api_mutex);
  return (driver ? g_only_driver : g_only_runtime).contains(cbid);
}

void emit(const void* record, size_t bytes, uint64_t complete_at) {
  Machine& m = Machine::get();
  ThreadBuffer& t = this_buffer();
  const std::lock_guard lock(t.mutex);
  if (m.any_fault()) {
    if (m.strikes(CUPTISIM_FAULT_DROP_RECORDS)) return drop(record);
    if (m.strikes(CUPTISIM_FAULT_LATE_RECORDS)) {
      const auto* from = static_cast<const uint8_t*>(record);
      t.held.push_back(
          {{from, from + bytes}, complete_at, t.written + m.fault(CUPTISIM_FAULT_LATE_RECORDS)->b});
      return;
    }
  }
  append(t, record, bytes, complete_at);
  while (!t.held.empty() && t.held.front().after <= t.written) {
    const Held h = std::move(t.held.front());
    t.held.erase(t.held.begin());
    append(t, h.bytes.data(), h.bytes.size(), h.complete_at);
  }
}

void emit_external_correlation(uint32_t correlation) {
  if (!kind_enabled(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)) return;
  for (int kind = 0; kind < CUPTI_EXTERNAL_CORRELATION_KIND_SIZE; ++kind) {
    const auto& stack = t_external.stack[kind];
    if (stack.empty()) continue;
    CUpti_ActivityExternalCorrelation r{};
    r.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    r.externalKind = static_cast<CUpti_ExternalCorrelationKind>(kind);
    r.externalId = stack.back();
    r.correlationId = correlation;
    emit(&r, sizeof r, 0);
  }
}

void emit_context_record(const Context& c) {
  if (!kind_enabled(CUPTI_ACTIVITY_KIND_CONTEXT)) return;
  CUpti_ActivityContext3 r{};
  r.kind = CUPTI_ACTIVITY_KIND_CONTEXT;
  r.contextId = c.id;
  r.deviceId = c.device;
  r.computeApiKind = CUPTI_ACTIVITY_COMPUTE_API_CUDA;
  r.nullStreamId = 7;
  emit(&r, sizeof r, 0);
}

void emit_device_records() {
  Machine& m = Machine::get();
  const Chip& c = m.chip();
  for (uint32_t d = 0; d < m.devices(); ++d) {
    CUpti_ActivityDevice5 r{};
    r.kind = CUPTI_ACTIVITY_KIND_DEVICE;
    r.flags = CUPTI_ACTIVITY_FLAG_DEVICE_CONCURRENT_KERNELS;
    r.globalMemoryBandwidth = c.bandwidth_kb;
    r.globalMemorySize = c.memory_bytes;
    r.constantMemorySize = 65536;
    r.l2CacheSize = c.l2_bytes;
    r.numThreadsPerWarp = 32;
    r.coreClockRate = c.clock_khz;
    r.numMemcpyEngines = c.copy_engines;
    r.numMultiprocessors = c.sms;
    r.maxIPC = 4;
    r.maxWarpsPerMultiprocessor = c.warps_per_sm;
    r.maxBlocksPerMultiprocessor = c.blocks_per_sm;
    r.maxSharedMemoryPerMultiprocessor = c.shared_per_sm;
    r.maxRegistersPerMultiprocessor = r.maxRegistersPerBlock = 65536;
    r.maxSharedMemoryPerBlock = 49152;
    r.maxThreadsPerBlock = r.maxBlockDimX = r.maxBlockDimY = 1024;
    r.maxBlockDimZ = 64;
    r.maxGridDimX = 2147483647;
    r.maxGridDimY = r.maxGridDimZ = 65535;
    r.computeCapabilityMajor = c.major;
    r.computeCapabilityMinor = c.minor;
    r.id = d;
    r.name = c.product;
    r.isCudaVisible = 1;
    emit(&r, sizeof r, 0);
  }
}

}  // namespace sim

using namespace sim;

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                                               CUpti_BuffersCallbackCompleteFunc complete) {
  SIM_FAULTS("cuptiActivityRegisterCallbacks");
  if (!request || !complete) return CUPTI_ERROR_INVALID_PARAMETER;
  g_request = request;
  g_complete = complete;
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc function) {
  SIM_FAULTS("cuptiActivityRegisterTimestampCallback");
  if (!function) return CUPTI_ERROR_INVALID_PARAMETER;
  Machine::get().set_timestamp_callback(function);
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind) {
  SIM_FAULTS("cuptiActivityEnable");
  if (kind <= CUPTI_ACTIVITY_KIND_INVALID || kind >= CUPTI_ACTIVITY_KIND_COUNT)
    return CUPTI_ERROR_INVALID_KIND;
  // Per-kernel serialisation and concurrent kernels exclude each other.
  if ((kind == CUPTI_ACTIVITY_KIND_KERNEL && kind_enabled(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) ||
      (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && kind_enabled(CUPTI_ACTIVITY_KIND_KERNEL)))
    return CUPTI_ERROR_NOT_COMPATIBLE;
  if (!g_request.load()) return CUPTI_ERROR_NOT_INITIALIZED;
  const bool was = g_kinds[kind].exchange(true);
  if (was) return CUPTI_SUCCESS;
  if (kind == CUPTI_ACTIVITY_KIND_DEVICE) emit_device_records();
  if (kind == CUPTI_ACTIVITY_KIND_CONTEXT)
    for (Context* c : Machine::get().contexts()) emit_context_record(*c);
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind) {
  SIM_FAULTS("cuptiActivityDisable");
  if (kind <= CUPTI_ACTIVITY_KIND_INVALID || kind >= CUPTI_ACTIVITY_KIND_COUNT)
    return CUPTI_ERROR_INVALID_KIND;
  g_kinds[kind] = false;
  if (kind == CUPTI_ACTIVITY_KIND_RUNTIME || kind == CUPTI_ACTIVITY_KIND_DRIVER) {
    const std::lock_guard lock(g_api_mutex);
    (kind == CUPTI_ACTIVITY_KIND_RUNTIME ? g_only_runtime : g_only_driver).clear();
  }
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid, uint8_t enable) {
  SIM_FAULTS("cuptiActivityEnableRuntimeApi");
  const std::lock_guard lock(g_api_mutex);
  enable ? static_cast<void>(g_only_runtime.insert(cbid)) : static_cast<void>(g_only_runtime.erase(cbid));
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t enable) {
  SIM_FAULTS("cuptiActivityEnableDriverApi");
  const std::lock_guard lock(g_api_mutex);
  enable ? static_cast<void>(g_only_driver.insert(cbid)) : static_cast<void>(g_only_driver.erase(cbid));
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t flag) {
  SIM_FAULTS("cuptiActivityFlushAll");
  const bool forced = (flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0;
  const uint64_t now = Machine::get().now();
  std::vector<std::shared_ptr<ThreadBuffer>> list;
  {
    const std::lock_guard lock(g_threads_mutex);
    list = threads();
  }
  for (const auto& t : list) {
    Buffer ready;
    {
      const std::lock_guard lock(t->mutex);
      for (const Held& h : t->held) append(*t, h.bytes.data(), h.bytes.size(), h.complete_at);
      t->held.clear();
      if (!t->buffer.data || (!forced && t->buffer.complete_at > now)) continue;
      std::swap(ready, t->buffer);
    }
    if (forced && ready.complete_at > now) {
      // Kernels that still run are handed over without an end, and do not come again.
      for (size_t at = 0; at < ready.used;) {
        auto* r = reinterpret_cast<CUpti_Activity*>(ready.data + at);
        if (is_kernel(r)) {
          auto* k = reinterpret_cast<CUpti_ActivityKernel10*>(r);
          if (k->end > now) k->end = 0;
        }
        at += stride(r->kind, Machine::get().version());
      }
    }
    deliver(ready);
  }
  Worker::get().drain(now, forced, &deliver);
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityFlushPeriod(uint32_t) {
  SIM_FAULTS("cuptiActivityFlushPeriod");
  return CUPTI_SUCCESS;  // full buffers leave at once here; a period adds nothing to that
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid,
                                                           CUpti_Activity** record) {
  if (!buffer || !record) return CUPTI_ERROR_INVALID_PARAMETER;
  const uint32_t version = Machine::get().version();
  size_t at = 0;
  if (*record) {
    const size_t step = stride((*record)->kind, version);
    if (step == 0) return CUPTI_ERROR_INVALID_KIND;
    at = static_cast<size_t>(reinterpret_cast<uint8_t*>(*record) - buffer) + step;
  }
  if (at >= valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  auto* next = reinterpret_cast<CUpti_Activity*>(buffer + at);
  const size_t size = stride(next->kind, version);
  if (size == 0 || at + size > valid) return CUPTI_ERROR_INVALID_KIND;
  *record = next;
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
  SIM_FAULTS("cuptiActivityGetNumDroppedRecords");
  if (!dropped) return CUPTI_ERROR_INVALID_PARAMETER;
  *dropped = g_dropped.exchange(0);
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivitySetAttribute(CUpti_ActivityAttribute, size_t* size,
                                                          void* value) {
  SIM_FAULTS("cuptiActivitySetAttribute");
  return size && value ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityEnableLatencyTimestamps(uint8_t) {
  SIM_FAULTS("cuptiActivityEnableLatencyTimestamps");
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                                       uint64_t id) {
  SIM_FAULTS("cuptiActivityPushExternalCorrelationId");
  if (kind <= CUPTI_EXTERNAL_CORRELATION_KIND_INVALID || kind >= CUPTI_EXTERNAL_CORRELATION_KIND_SIZE)
    return CUPTI_ERROR_INVALID_PARAMETER;
  t_external.stack[kind].push_back(id);
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                                      uint64_t* last) {
  SIM_FAULTS("cuptiActivityPopExternalCorrelationId");
  if (kind <= CUPTI_EXTERNAL_CORRELATION_KIND_INVALID || kind >= CUPTI_EXTERNAL_CORRELATION_KIND_SIZE)
    return CUPTI_ERROR_INVALID_PARAMETER;
  auto& stack = t_external.stack[kind];
  if (stack.empty()) return CUPTI_ERROR_QUEUE_EMPTY;
  if (last) *last = stack.back();
  stack.pop_back();
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiSetThreadIdType(CUpti_ActivityThreadIdType type) {
  SIM_FAULTS("cuptiSetThreadIdType");
  return type == CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT || type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM
             ? CUPTI_SUCCESS
             : CUPTI_ERROR_INVALID_PARAMETER;
}
