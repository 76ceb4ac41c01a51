// The floor, and the launches, without anything of the profiler: loaded by native.py through ctypes.
//
// bare_*: the least any activity collector can do. It hands out buffers, gets them back full and throws them
// away. launch_*: an empty kernel launched in a loop through the driver API, timed one by one where asked.
#include <cuda.h>
#include <cupti_activity.h>
#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr size_t kPoolBytes = 32 << 20;  // made and touched before the start, whatever the size of a buffer
constexpr size_t kFewestBuffers = 4;

struct Cupti {
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityFlushAll) flush = nullptr;
} g_cupti;

std::mutex g_mutex;  // guards g_free and g_buffer_bytes
std::vector<uint8_t*> g_free;
size_t g_buffer_bytes = 0;
std::atomic<uint64_t> g_bytes{0};
std::atomic<uint64_t> g_requested{0};

void CUPTIAPI requested(uint8_t** buffer, size_t* size, size_t* max_records) {
  *max_records = 0;
  g_requested.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard lock(g_mutex);
  *size = g_buffer_bytes;
  if (g_free.empty()) {
    *buffer = static_cast<uint8_t*>(std::aligned_alloc(4096, g_buffer_bytes));
    return;
  }
  *buffer = g_free.back();
  g_free.pop_back();
}

void CUPTIAPI completed(CUcontext, uint32_t, uint8_t* buffer, size_t size, size_t valid) {
  g_bytes.fetch_add(valid, std::memory_order_relaxed);
  const std::lock_guard lock(g_mutex);
  if (size == g_buffer_bytes)
    g_free.push_back(buffer);
  else
    std::free(buffer);  // CUPTI kept it since a start with buffers of another size
}

// `buffer_bytes`: a multiple of the page size.
void fill_pool(size_t buffer_bytes) {
  const std::lock_guard lock(g_mutex);
  if (buffer_bytes != g_buffer_bytes) {
    for (uint8_t* b : g_free) std::free(b);
    g_free.clear();
    g_buffer_bytes = buffer_bytes;
  }
  while (g_free.size() < std::max(kPoolBytes / buffer_bytes, kFewestBuffers)) {
    auto* b = static_cast<uint8_t*>(std::aligned_alloc(4096, buffer_bytes));
    for (size_t at = 0; at < buffer_bytes; at += 4096) b[at] = 0;
    g_free.push_back(b);
  }
}

uint64_t monotonic_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1'000'000'000 + uint64_t(t.tv_nsec);
}

struct Driver {
  decltype(&cuLaunchKernel) launch = nullptr;
  decltype(&cuCtxSynchronize) synchronize = nullptr;
  decltype(&cuCtxSetCurrent) set_current = nullptr;
  CUcontext context = nullptr;
  CUfunction function = nullptr;
} g_driver;

const char kEmptyKernel[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry empty() { ret; }\n";

template <typename Function>
bool find(void* library, const char* name, Function& out) {
  out = reinterpret_cast<Function>(dlsym(library, name));
  return out != nullptr;
}

}  // namespace

// 0, a CUptiResult, or -1: the library cannot be loaded or lacks a function.
EXPORT int bare_start(const char* libcupti, int kind, uint64_t buffer_bytes) {
  void* library = dlopen(libcupti, RTLD_NOW | RTLD_LOCAL);
  if (!library || !find(library, "cuptiActivityRegisterCallbacks", g_cupti.register_callbacks) ||
      !find(library, "cuptiActivityEnable", g_cupti.enable) ||
      !find(library, "cuptiActivityDisable", g_cupti.disable) ||
      !find(library, "cuptiActivityFlushAll", g_cupti.flush))
    return -1;
  fill_pool(buffer_bytes);
  g_bytes.store(0);
  g_requested.store(0);
  if (const int rc = g_cupti.register_callbacks(&requested, &completed)) return rc;
  return g_cupti.enable(static_cast<CUpti_ActivityKind>(kind));
}

// What came: bytes of records, and how often a buffer was requested.
EXPORT int bare_stop(int kind, uint64_t* bytes, uint64_t* requested_buffers) {
  int rc = g_cupti.disable(static_cast<CUpti_ActivityKind>(kind));
  if (const int flushed = g_cupti.flush(0); rc == 0) rc = flushed;
  *bytes = g_bytes.load();
  *requested_buffers = g_requested.load();
  return rc;
}

// The primary context of device 0 and an empty kernel in it. 0 or a CUresult; -1: no driver.
EXPORT int launch_prepare() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  decltype(&cuInit) init;
  decltype(&cuDevicePrimaryCtxRetain) retain;
  decltype(&cuModuleLoadData) load;
  decltype(&cuModuleGetFunction) get;
  if (!driver || !find(driver, "cuInit", init) || !find(driver, "cuDevicePrimaryCtxRetain", retain) ||
      !find(driver, "cuModuleLoadData", load) || !find(driver, "cuModuleGetFunction", get) ||
      !find(driver, "cuLaunchKernel", g_driver.launch) ||
      !find(driver, "cuCtxSynchronize", g_driver.synchronize) ||
      !find(driver, "cuCtxSetCurrent", g_driver.set_current))
    return -1;
  CUmodule module;
  if (const int rc = init(0)) return rc;
  if (const int rc = retain(&g_driver.context, 0)) return rc;
  if (const int rc = g_driver.set_current(g_driver.context)) return rc;
  if (const int rc = load(&module, kEmptyKernel)) return rc;
  return get(&g_driver.function, module, "empty");
}

// `ns`: where each launch's time goes; null: nothing is timed.
EXPORT int launch_timed(uint32_t count, uint32_t* ns) {
  thread_local bool current = false;
  if (!current) {
    if (const int rc = g_driver.set_current(g_driver.context)) return rc;
    current = true;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t start = ns ? monotonic_ns() : 0;
    if (const int rc = g_driver.launch(g_driver.function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr))
      return rc;
    if (ns) ns[i] = uint32_t(std::min<uint64_t>(monotonic_ns() - start, UINT32_MAX));
  }
  return 0;
}

EXPORT int launch_loop(uint32_t count) { return launch_timed(count, nullptr); }

EXPORT int launch_synchronize() {
  if (const int rc = g_driver.set_current(g_driver.context)) return rc;
  return g_driver.synchronize();
}
