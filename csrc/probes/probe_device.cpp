#include "probes/probe_device.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "probes/probe_images.h"

namespace cuptiprof::probes {
namespace {

constexpr size_t kUsualSharedLimit = 48 * 1024;  // more must be asked for, per function

void check(const Api& api, CUresult rc, const char* name) {
  if (rc == CUDA_SUCCESS) return;
  const char* text = nullptr;
  if (!api.cuGetErrorName || api.cuGetErrorName(rc, &text) != CUDA_SUCCESS || !text) text = "CUDA error";
  const char* hint = rc == CUDA_ERROR_OUT_OF_MEMORY ? "free GPU memory, or choose fewer probes with --probe"
                     : rc == CUDA_ERROR_NO_BINARY_FOR_GPU
                         ? "rebuild cuptiprof with an nvcc that knows this GPU"
                     : rc == CUDA_ERROR_UNSUPPORTED_PTX_VERSION ? "update the NVIDIA driver"
                                                                : "";
  throw Error::from_call(std::string(name) + " returned " + text, hint, static_cast<int>(rc), text, name);
}

template <class F, class... A>
CUresult ask_driver(const Api& api, F function, const char* name, A... arguments) {
  if (!function)
    throw Error(ErrorKind::kDevice, std::string("this driver has no ") + name + ": probes cannot run",
                api.simulated ? "the simulated device runs no kernels; it is given their counters instead"
                              : "update the NVIDIA driver (12.0 or newer)");
  return function(arguments...);
}

template <class F, class... A>
void call_driver(const Api& api, F function, const char* name, A... arguments) {
  check(api, ask_driver(api, function, name, arguments...), name);
}

CUstream stream_of(uint64_t handle) { return reinterpret_cast<CUstream>(handle); }

}  // namespace

#define CP_CALL(name, ...) call(x_api->name, #name __VA_OPT__(, ) __VA_ARGS__)

template <class F, class... A>
void ProbeDevice::call(F function, const char* name, A... arguments) const {
  call_driver(*x_api, function, name, arguments...);
}

class ProbeDevice::Current {
 public:
  explicit Current(const ProbeDevice& device) : x_api(*device.x_api) {
    call_driver(x_api, x_api.cuCtxPushCurrent_v2, "cuCtxPushCurrent", device.x_context);
  }
  ~Current() {
    CUcontext context = nullptr;
    x_api.cuCtxPopCurrent_v2(&context);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  const Api& x_api;
};

int ProbeDevice::count(const Api& api) {
  int count = 0;
  call_driver(api, api.cuInit, "cuInit", 0u);
  call_driver(api, api.cuDeviceGetCount, "cuDeviceGetCount", &count);
  return count;
}

ProbeDevice::ProbeDevice(std::shared_ptr<const Api> api, int device, bool with_probes)
    : x_api(std::move(api)), x_device(device) {
  if (with_probes && images().empty())
    throw Error(ErrorKind::kDevice,
                "this build of cuptiprof has no probes: nvcc was not found when it was built",
                "install the CUDA toolkit (or set CUDACXX to its nvcc) and reinstall cuptiprof");
  if (const int n = count(*x_api); device < 0 || device >= n)
    throw Error(ErrorKind::kDevice,
                "there is no GPU " + std::to_string(device) + ": " + std::to_string(n) + " found");
  CP_CALL(cuDevicePrimaryCtxRetain, &x_context, x_device);
  try {
    const Current current(*this);
    for (const Image& image : with_probes ? images() : std::span<const Image>()) {
      CUmodule module = nullptr;
      CP_CALL(cuModuleLoadData, &module, static_cast<const void*>(image.data));
      x_modules.push_back(module);
    }
  } catch (...) {
    release();
    throw;
  }
}

ProbeDevice::~ProbeDevice() { release(); }

void ProbeDevice::release() noexcept {
  if (!x_context) return;
  const Api& api = *x_api;
  if (api.cuCtxPushCurrent_v2(x_context) == CUDA_SUCCESS) {
    if (api.cuCtxSynchronize) api.cuCtxSynchronize();
    for (CUgraphExec graph : x_graphs) api.cuGraphExecDestroy(graph);
    for (CUevent event : x_events) api.cuEventDestroy_v2(event);
    for (CUstream stream : x_streams) api.cuStreamDestroy_v2(stream);
    for (CUdeviceptr address : x_memory) api.cuMemFree_v2(address);
    for (void* address : x_host_memory) api.cuMemFreeHost(address);
    for (CUmodule module : x_modules) api.cuModuleUnload(module);
    CUcontext context = nullptr;
    api.cuCtxPopCurrent_v2(&context);
  }
  if (api.cuDevicePrimaryCtxRelease_v2) api.cuDevicePrimaryCtxRelease_v2(x_device);
  x_context = nullptr;
}

int ProbeDevice::attribute(int id) const {
  int value = 0;
  CP_CALL(cuDeviceGetAttribute, &value, static_cast<CUdevice_attribute>(id), x_device);
  return value;
}

void ProbeDevice::load_module(const std::string& image) {
  const Current current(*this);
  CUmodule module = nullptr;
  CP_CALL(cuModuleLoadData, &module, static_cast<const void*>(image.c_str()));  // PTX must end with NUL
  const std::lock_guard lock(x_functions_guard);
  x_modules.push_back(module);
}

CUfunction ProbeDevice::function(const std::string& kernel) {
  const std::lock_guard lock(x_functions_guard);
  if (const auto at = x_functions.find(kernel); at != x_functions.end()) return at->second;
  for (CUmodule module : x_modules) {
    CUfunction found = nullptr;
    if (!x_api->cuModuleGetFunction ||
        x_api->cuModuleGetFunction(&found, module, kernel.c_str()) != CUDA_SUCCESS)
      continue;
    return x_functions[kernel] = found;
  }
  throw Error(ErrorKind::kDevice, "there is no probe kernel " + kernel);
}

int ProbeDevice::kernel_attribute(const std::string& kernel, int id) {
  const Current current(*this);
  int value = 0;
  CP_CALL(cuFuncGetAttribute, &value, static_cast<CUfunction_attribute>(id), function(kernel));
  return value;
}

std::array<size_t, 2> ProbeDevice::memory_info() {
  const Current current(*this);
  std::array<size_t, 2> bytes{};
  CP_CALL(cuMemGetInfo_v2, &bytes[0], &bytes[1]);
  return bytes;
}

uint64_t ProbeDevice::allocate(size_t bytes, bool zeroed) {
  const Current current(*this);
  CUdeviceptr address = 0;
  CP_CALL(cuMemAlloc_v2, &address, bytes);
  x_memory.push_back(address);
  if (!zeroed) return address;
  CP_CALL(cuMemsetD8Async, address, static_cast<unsigned char>(0), bytes, nullptr);
  CP_CALL(cuCtxSynchronize);
  return address;
}

uint64_t ProbeDevice::allocate_host(size_t bytes) {
  const Current current(*this);
  void* address = nullptr;
  CP_CALL(cuMemAllocHost_v2, &address, bytes);
  x_host_memory.push_back(address);
  std::memset(address, 0, bytes);
  return reinterpret_cast<uint64_t>(address);
}

void ProbeDevice::free(uint64_t address) {
  const Current current(*this);
  if (const auto at = std::find(x_memory.begin(), x_memory.end(), address); at != x_memory.end()) {
    x_memory.erase(at);
    CP_CALL(cuMemFree_v2, static_cast<CUdeviceptr>(address));
  } else if (const auto host =
                 std::find(x_host_memory.begin(), x_host_memory.end(), reinterpret_cast<void*>(address));
             host != x_host_memory.end()) {
    x_host_memory.erase(host);
    CP_CALL(cuMemFreeHost, reinterpret_cast<void*>(address));
  } else {
    throw Error(ErrorKind::kGeneric, "not an address that this device gave");
  }
}

uint32_t ProbeDevice::read_word(uint64_t address) {
  const Current current(*this);
  uint32_t word = 0;
  CP_CALL(cuMemcpyDtoHAsync_v2, static_cast<void*>(&word), static_cast<CUdeviceptr>(address), sizeof word,
          nullptr);
  CP_CALL(cuCtxSynchronize);
  return word;
}

void ProbeDevice::launch(const std::string& kernel, Dim3 grid, Dim3 block, unsigned shared, uint64_t stream,
                         std::vector<uint64_t> arguments) {
  const Current current(*this);
  const CUfunction f = function(kernel);
  if (shared > kUsualSharedLimit)
    CP_CALL(cuFuncSetAttribute, f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(shared));
  if (shared >
      0)  // the driver would split L1 as it thinks best; how many blocks fit shall not depend on that
    CP_CALL(cuFuncSetAttribute, f, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
            static_cast<int>(CU_SHAREDMEM_CARVEOUT_MAX_SHARED));
  std::vector<void*> pointers;
  for (uint64_t& argument : arguments) pointers.push_back(&argument);
  CP_CALL(cuLaunchKernel, f, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared,
          stream_of(stream), pointers.data(), nullptr);
}

void ProbeDevice::copy(Copy kind, uint64_t destination, uint64_t source, size_t bytes, uint64_t stream) {
  const Current current(*this);
  switch (kind) {
    case Copy::kHostToDevice:
      CP_CALL(cuMemcpyHtoDAsync_v2, static_cast<CUdeviceptr>(destination),
              reinterpret_cast<const void*>(source), bytes, stream_of(stream));
      break;
    case Copy::kDeviceToHost:
      CP_CALL(cuMemcpyDtoHAsync_v2, reinterpret_cast<void*>(destination), static_cast<CUdeviceptr>(source),
              bytes, stream_of(stream));
      break;
    case Copy::kDeviceToDevice:
      CP_CALL(cuMemcpyDtoDAsync_v2, static_cast<CUdeviceptr>(destination), static_cast<CUdeviceptr>(source),
              bytes, stream_of(stream));
      break;
    default:
      throw Error(ErrorKind::kGeneric, "not a kind of copy that probes make");
  }
}

void ProbeDevice::copy_peer(uint64_t destination, const ProbeDevice& other, uint64_t source, size_t bytes,
                            uint64_t stream) {
  const Current current(*this);
  CP_CALL(cuMemcpyPeerAsync, static_cast<CUdeviceptr>(destination), x_context,
          static_cast<CUdeviceptr>(source), other.x_context, bytes, stream_of(stream));
}

void ProbeDevice::set(uint64_t destination, unsigned value, unsigned width, size_t count, uint64_t stream) {
  const Current current(*this);
  if (width == 1)
    CP_CALL(cuMemsetD8Async, static_cast<CUdeviceptr>(destination), static_cast<unsigned char>(value), count,
            stream_of(stream));
  else if (width == 4)
    CP_CALL(cuMemsetD32Async, static_cast<CUdeviceptr>(destination), value, count, stream_of(stream));
  else
    throw Error(ErrorKind::kGeneric, "the width of a memset is 1 or 4 bytes");
}

uint64_t ProbeDevice::make_stream() {
  const Current current(*this);
  CUstream stream = nullptr;
  CP_CALL(cuStreamCreate, &stream, static_cast<unsigned>(CU_STREAM_NON_BLOCKING));
  x_streams.push_back(stream);
  return reinterpret_cast<uint64_t>(stream);
}

void ProbeDevice::order(uint64_t first, uint64_t then) {
  const Current current(*this);
  CUevent event = nullptr;
  CP_CALL(cuEventCreate, &event, static_cast<unsigned>(CU_EVENT_DISABLE_TIMING));
  const auto destroy = [this](CUevent e) {
    x_api->cuEventDestroy_v2(e);
  };  // the driver keeps it as long as needed
  const std::unique_ptr<std::remove_pointer_t<CUevent>, decltype(destroy)> owner(event, destroy);
  CP_CALL(cuEventRecord, event, stream_of(first));
  CP_CALL(cuStreamWaitEvent, stream_of(then), event, 0u);
}

uint64_t ProbeDevice::make_event() {
  const Current current(*this);
  CUevent event = nullptr;
  CP_CALL(cuEventCreate, &event, static_cast<unsigned>(CU_EVENT_DEFAULT));
  x_events.push_back(event);
  return reinterpret_cast<uint64_t>(event);
}

void ProbeDevice::record(uint64_t event, uint64_t stream) {
  const Current current(*this);
  CP_CALL(cuEventRecord, reinterpret_cast<CUevent>(event), stream_of(stream));
}

bool ProbeDevice::passed(uint64_t event) const {
  const Current current(*this);
  const CUresult rc =
      ask_driver(*x_api, x_api->cuEventQuery, "cuEventQuery", reinterpret_cast<CUevent>(event));
  if (rc == CUDA_ERROR_NOT_READY) return false;
  check(*x_api, rc, "cuEventQuery");
  return true;
}

double ProbeDevice::elapsed_ns(uint64_t first, uint64_t second) const {
  const Current current(*this);
  float ms = 0;
  CP_CALL(cuEventElapsedTime, &ms, reinterpret_cast<CUevent>(first), reinterpret_cast<CUevent>(second));
  return static_cast<double>(ms) * 1e6;
}

void ProbeDevice::begin_capture(uint64_t stream) {
  const Current current(*this);
  CP_CALL(cuStreamBeginCapture_v2, stream_of(stream), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

uint64_t ProbeDevice::end_capture(uint64_t stream) {
  const Current current(*this);
  CUgraph graph = nullptr;
  CP_CALL(cuStreamEndCapture, stream_of(stream), &graph);
  const auto destroy = [this](CUgraph g) { x_api->cuGraphDestroy(g); };
  const std::unique_ptr<std::remove_pointer_t<CUgraph>, decltype(destroy)> owner(graph, destroy);
  CUgraphExec executable = nullptr;
  CP_CALL(cuGraphInstantiateWithFlags, &executable, graph, 0ull);
  x_graphs.push_back(executable);
  return reinterpret_cast<uint64_t>(executable);
}

void ProbeDevice::launch_graph(uint64_t graph, uint64_t stream) {
  const Current current(*this);
  CP_CALL(cuGraphLaunch, reinterpret_cast<CUgraphExec>(graph), stream_of(stream));
}

void ProbeDevice::synchronize() {
  const Current current(*this);
  CP_CALL(cuCtxSynchronize);
}

}  // namespace cuptiprof::probes
