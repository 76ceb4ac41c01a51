// ProbeDevice over a driver made of functions that take notes: arguments arrive, everything is given back,
// and a failure half way leaves nothing behind. Defines its own images(), so that it needs no nvcc.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "probes/probe_device.h"
#include "probes/probe_images.h"

namespace cuptiprof::probes {

std::span<const Image> images() {
  static const unsigned char kData[] = {1, 2, 3};
  static const Image kImages[] = {{"one", kData, sizeof kData}, {"two", kData, sizeof kData}};
  return kImages;
}

}  // namespace cuptiprof::probes

namespace {

using cuptiprof::Api;
using cuptiprof::Error;
using cuptiprof::probes::ProbeDevice;

struct Driver {
  std::set<void*> held;  // memory, modules, streams, events, graphs
  int contexts = 0, calls_until_failure = -1;
  std::atomic<int> depth = 0, launches = 0;
  std::mutex arguments_guard;
  std::vector<int> function_attributes;
  std::vector<uint64_t> arguments;
  bool failed = false;
} g_driver;

template <class T>
T make() {
  void* p = std::malloc(16);
  g_driver.held.insert(p);
  return reinterpret_cast<T>(p);
}

template <class T>
CUresult take(T handle) {
  void* p = reinterpret_cast<void*>(handle);
  if (!g_driver.held.erase(p)) return CUDA_ERROR_INVALID_HANDLE;
  std::free(p);
  return CUDA_SUCCESS;
}

// The n-th call that can fail does.
CUresult fails() {
  if (g_driver.calls_until_failure < 0 || g_driver.calls_until_failure-- > 0) return CUDA_SUCCESS;
  g_driver.failed = true;
  return CUDA_ERROR_OUT_OF_MEMORY;
}

#define FAIL_FIRST \
  if (const CUresult rc = fails(); rc != CUDA_SUCCESS) return rc

void require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "probe_device_test: %s\n", what);
  std::exit(1);
}

std::shared_ptr<Api> make_api() {
  auto api = std::make_shared<Api>();
  api->cuInit = [](unsigned) { return CUDA_SUCCESS; };
  api->cuGetErrorName = [](CUresult, const char** name) {
    *name = "CUDA_ERROR_OUT_OF_MEMORY";
    return CUDA_SUCCESS;
  };
  api->cuDeviceGetCount = [](int* n) {
    *n = 2;
    return CUDA_SUCCESS;
  };
  api->cuDeviceGetAttribute = [](int* value, CUdevice_attribute id, CUdevice) {
    FAIL_FIRST;
    *value = static_cast<int>(id) * 2;
    return CUDA_SUCCESS;
  };
  api->cuDevicePrimaryCtxRetain = [](CUcontext* context, CUdevice) {
    FAIL_FIRST;
    ++g_driver.contexts;
    *context = reinterpret_cast<CUcontext>(&g_driver);
    return CUDA_SUCCESS;
  };
  api->cuDevicePrimaryCtxRelease_v2 = [](CUdevice) {
    --g_driver.contexts;
    return CUDA_SUCCESS;
  };
  api->cuCtxPushCurrent_v2 = [](CUcontext) {
    g_driver.depth.fetch_add(1, std::memory_order_relaxed);  // orders nothing for the sanitizer
    return CUDA_SUCCESS;
  };
  api->cuCtxPopCurrent_v2 = [](CUcontext*) {
    g_driver.depth.fetch_sub(1, std::memory_order_relaxed);
    return CUDA_SUCCESS;
  };
  api->cuCtxSynchronize = [] { return CUDA_SUCCESS; };
  api->cuModuleLoadData = [](CUmodule* module, const void* data) {
    FAIL_FIRST;
    require(
        std::memcmp(data, "\1\2\3", 3) == 0 || std::strcmp(static_cast<const char*>(data), "PTX text") == 0,
        "the image is passed on, text with its end");
    *module = make<CUmodule>();
    return CUDA_SUCCESS;
  };
  api->cuModuleUnload = [](CUmodule module) { return take(module); };
  api->cuModuleGetFunction = [](CUfunction* f, CUmodule module, const char* name) {
    // Only the second module has it.
    if (std::string(name) != "known" || g_driver.held.find(module) == g_driver.held.begin())
      return CUDA_ERROR_NOT_FOUND;
    *f = reinterpret_cast<CUfunction>(&g_driver);
    return CUDA_SUCCESS;
  };
  api->cuFuncGetAttribute = [](int* value, CUfunction_attribute id, CUfunction) {
    FAIL_FIRST;
    *value = static_cast<int>(id) + 1;
    return CUDA_SUCCESS;
  };
  api->cuFuncSetAttribute = [](CUfunction, CUfunction_attribute id, int) {
    FAIL_FIRST;
    g_driver.function_attributes.push_back(static_cast<int>(id));
    return CUDA_SUCCESS;
  };
  api->cuLaunchKernel = [](CUfunction, unsigned gx, unsigned, unsigned, unsigned bx, unsigned, unsigned,
                           unsigned, CUstream, void** arguments, void**) {
    FAIL_FIRST;
    require(gx == 7 && bx == 32, "grid and block are passed on");
    ++g_driver.launches;
    const std::lock_guard lock(g_driver.arguments_guard);
    g_driver.arguments.clear();
    for (int i = 0; i < 3; ++i) g_driver.arguments.push_back(*static_cast<uint64_t*>(arguments[i]));
    return CUDA_SUCCESS;
  };
  api->cuMemAlloc_v2 = [](CUdeviceptr* p, size_t) {
    FAIL_FIRST;
    *p = make<CUdeviceptr>();
    return CUDA_SUCCESS;
  };
  api->cuMemFree_v2 = [](CUdeviceptr p) { return take(p); };
  api->cuMemAllocHost_v2 = [](void** p, size_t) {
    FAIL_FIRST;
    *p = make<void*>();
    return CUDA_SUCCESS;
  };
  api->cuMemFreeHost = [](void* p) { return take(p); };
  api->cuMemGetInfo_v2 = [](size_t* free, size_t* total) {
    *free = 1, *total = 2;
    return CUDA_SUCCESS;
  };
  api->cuMemcpyHtoDAsync_v2 = [](CUdeviceptr, const void*, size_t, CUstream) { return fails(); };
  api->cuMemcpyDtoHAsync_v2 = [](void* to, CUdeviceptr, size_t bytes, CUstream) {
    FAIL_FIRST;
    std::memset(to, 0x11, bytes < 16 ? bytes : 16);
    return CUDA_SUCCESS;
  };
  api->cuMemcpyDtoDAsync_v2 = [](CUdeviceptr, CUdeviceptr, size_t, CUstream) { return fails(); };
  api->cuMemcpyPeerAsync = [](CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream) {
    return fails();
  };
  api->cuMemsetD8Async = [](CUdeviceptr, unsigned char, size_t, CUstream) { return fails(); };
  api->cuMemsetD32Async = [](CUdeviceptr, unsigned, size_t, CUstream) { return fails(); };
  api->cuStreamCreate = [](CUstream* s, unsigned) {
    FAIL_FIRST;
    *s = make<CUstream>();
    return CUDA_SUCCESS;
  };
  api->cuStreamDestroy_v2 = [](CUstream s) { return take(s); };
  api->cuStreamWaitEvent = [](CUstream, CUevent, unsigned) { return fails(); };
  api->cuEventCreate = [](CUevent* e, unsigned) {
    FAIL_FIRST;
    *e = make<CUevent>();
    return CUDA_SUCCESS;
  };
  api->cuEventRecord = [](CUevent, CUstream) { return fails(); };
  api->cuEventQuery = [](CUevent e) {
    FAIL_FIRST;
    return e ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
  };
  api->cuEventElapsedTime = [](float* ms, CUevent, CUevent) {
    FAIL_FIRST;
    *ms = 0.25f;
    return CUDA_SUCCESS;
  };
  api->cuEventDestroy_v2 = [](CUevent e) { return take(e); };
  api->cuStreamBeginCapture_v2 = [](CUstream, CUstreamCaptureMode) { return fails(); };
  api->cuStreamEndCapture = [](CUstream, CUgraph* graph) {
    FAIL_FIRST;
    *graph = make<CUgraph>();
    return CUDA_SUCCESS;
  };
  api->cuGraphInstantiateWithFlags = [](CUgraphExec* exec, CUgraph, unsigned long long) {
    FAIL_FIRST;
    *exec = make<CUgraphExec>();
    return CUDA_SUCCESS;
  };
  api->cuGraphLaunch = [](CUgraphExec, CUstream) { return fails(); };
  api->cuGraphDestroy = [](CUgraph g) { return take(g); };
  api->cuGraphExecDestroy = [](CUgraphExec g) { return take(g); };
  return api;
}

// Every call of a ProbeDevice once.
void use(const std::shared_ptr<Api>& api) {
  using Copy = ProbeDevice::Copy;
  ProbeDevice device(api, 0), other(api, 1);
  require(device.attribute(16) == 32, "attributes");
  const uint64_t memory = device.allocate(100), host = device.allocate_host(16),
                 gone = device.allocate(8, false);
  device.free(gone);
  require(device.kernel_attribute("known", 4) == 5, "kernel attributes");
  device.launch("known", {7, 1, 1}, {32, 1, 1}, 0, 0, {memory, 42, ~0ull});
  require(g_driver.arguments == std::vector<uint64_t>{memory, 42, ~0ull}, "arguments");
  device.launch("known", {7, 1, 1}, {32, 1, 1}, 64 << 10, 0, {1, 2, 3});
  device.load_module("PTX text");
  const uint64_t first = device.make_stream(), second = device.make_stream();
  device.order(first, second);
  const uint64_t event = device.make_event();
  device.record(event, first);
  require(device.passed(0) && !device.passed(event), "whether an event has passed");
  require(device.elapsed_ns(event, event) == 250e3, "time between events");
  device.begin_capture(first);
  const uint64_t graph = device.end_capture(first);
  device.launch_graph(graph, second);
  device.copy(Copy::kHostToDevice, memory, host, 16, first);
  device.copy(Copy::kDeviceToHost, host, memory, 16, first);
  device.copy(Copy::kDeviceToDevice, memory, memory, 16, first);
  device.copy_peer(memory, other, memory, 16, 0);
  device.set(memory, 1, 1, 16, 0);
  device.set(memory, 1, 4, 4, 0);
  require(device.read_word(memory) == 0x11111111, "words are read");
  device.synchronize();
}

void require_clean(const char* when) {
  require(g_driver.held.empty() && g_driver.contexts == 0 && g_driver.depth == 0, when);
}

template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

}  // namespace

int main() {
  const auto api = make_api();
  use(api);
  require_clean("all is given back");
  require(g_driver.launches == 2, "two launches");
  const std::vector<int> asked{CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                               CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT};
  require(g_driver.function_attributes == asked, "large shared memory is asked for, and only that");

  {  // Many threads launch a kernel that none has looked up.
    ProbeDevice device(api, 0);
    device.load_module("PTX text");
    std::vector<std::future<void>> threads;
    for (int i = 0; i < 4; ++i)
      threads.push_back(std::async(std::launch::async, [&] {
        for (int k = 0; k < 100; ++k) device.launch("known", {7, 1, 1}, {32, 1, 1}, 0, 0, {1, 2, 3});
      }));
    for (auto& t : threads) t.get();
    require(g_driver.launches == 402, "all launches arrive");
  }
  require_clean("after threads");

  // Whichever call fails, nothing is left and the error names it.
  int failures = 0;
  for (int i = 0; i < 1000; ++i) {
    g_driver.calls_until_failure = i;
    g_driver.failed = false;
    const std::string error = error_of([&] { use(api); });
    require_clean("nothing is left after a failure");
    if (!g_driver.failed) break;
    ++failures;
    require(error.find("returned CUDA_ERROR_OUT_OF_MEMORY") != std::string::npos, "the error names the code");
  }
  require(failures > 25 && failures < 1000, "every call failed once");
  g_driver.calls_until_failure = -1;

  require(error_of([&] { ProbeDevice(api, 2); }).find("no GPU 2") != std::string::npos, "no third GPU");
  require(error_of([&] { ProbeDevice(api, -1); }).find("no GPU -1") != std::string::npos, "no GPU -1");
  require(!error_of([&] { ProbeDevice(api, 0).free(12345); }).empty(), "foreign addresses are refused");
  require(ProbeDevice(api, 0, false).attribute(16) > 0, "a device without probes has attributes");
  require(!error_of([&] {
             ProbeDevice(api, 0, false).launch("probe_spin", {1, 1, 1}, {1, 1, 1}, 0, 0, {});
           }).empty(),
          "and no probe kernels");
  require(!error_of([&] { ProbeDevice(api, 0).launch("unknown", {1, 1, 1}, {1, 1, 1}, 0, 0, {}); }).empty(),
          "unknown kernels are refused");
  require(!error_of([&] { ProbeDevice(api, 0).set(1, 1, 2, 1, 0); }).empty(), "no sets of 16 bits");
  api->cuMemAlloc_v2 = nullptr;  // an old driver
  require(error_of([&] { ProbeDevice(api, 0).allocate(1); }).find("cuMemAlloc_v2") != std::string::npos,
          "a missing function is named");
  require_clean("at the end");
  std::printf("probe_device_test: %d failures, nothing left\n", failures);
}
