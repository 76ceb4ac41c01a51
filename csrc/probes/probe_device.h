// One GPU on which probes run: its primary context, our modules, and what was allocated. Everything goes
// through the driver table and is given back by the destructor.
//
// One thread at a time uses an object, but any number may launch. Handles are the driver's own, as integers.
// Each function makes the context current for its own time only, and throws Error (kCupti) with the driver's
// code, or kDevice where a function is missing.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cupti/api.h"

namespace cuptiprof::probes {

using Dim3 = std::array<unsigned, 3>;

class ProbeDevice {
 public:
  // Without the probe kernels it is only a device: attributes, memory, streams, modules of the caller's.
  ProbeDevice(std::shared_ptr<const Api> api, int device, bool with_probes = true);
  ~ProbeDevice();
  ProbeDevice(const ProbeDevice&) = delete;
  ProbeDevice& operator=(const ProbeDevice&) = delete;

  static int count(const Api& api);

  int attribute(int id) const;                              // CUdevice_attribute
  int kernel_attribute(const std::string& kernel, int id);  // CUfunction_attribute
  std::array<size_t, 2> memory_info();                      // free, total
  uint64_t context() const { return reinterpret_cast<uint64_t>(x_context); }

  uint64_t allocate(size_t bytes, bool zeroed = true);  // device memory
  uint64_t allocate_host(size_t bytes);                 // zeroed pinned memory
  void free(uint64_t address);                          // of either kind
  uint32_t read_word(uint64_t address);                 // device memory, synchronous

  void load_module(const std::string& image);  // PTX text or a cubin; its kernels can be launched

  // Arguments are 64 bits each. More than 48 KB of shared memory is asked for when needed.
  void launch(const std::string& kernel, Dim3 grid, Dim3 block, unsigned shared, uint64_t stream,
              std::vector<uint64_t> arguments);
  enum class Copy { kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 8 };  // CUpti_ActivityMemcpyKind
  void copy(Copy kind, uint64_t destination, uint64_t source, size_t bytes, uint64_t stream);
  void copy_peer(uint64_t destination, const ProbeDevice& other, uint64_t source, size_t bytes,
                 uint64_t stream);
  void set(uint64_t destination, unsigned value, unsigned width, size_t count,
           uint64_t stream);  // width: 1 or 4

  uint64_t make_stream();                     // does not wait for the default stream
  void order(uint64_t first, uint64_t then);  // what is now in `first` before what comes in `then`
  uint64_t make_event();                      // with times
  void record(uint64_t event, uint64_t stream);
  bool passed(uint64_t event) const;                         // of its last recording
  double elapsed_ns(uint64_t first, uint64_t second) const;  // both have passed
  void begin_capture(uint64_t stream);
  uint64_t end_capture(uint64_t stream);  // an executable graph
  void launch_graph(uint64_t graph, uint64_t stream);
  void synchronize();

 private:
  class Current;  // makes the context current while it lives
  CUfunction function(const std::string& kernel);
  template <class F, class... A>
  void call(F function, const char* name, A... arguments) const;
  void release() noexcept;

  std::shared_ptr<const Api> x_api;
  CUdevice x_device = 0;
  CUcontext x_context = nullptr;
  std::vector<CUmodule> x_modules;
  std::mutex x_functions_guard;  // guards x_modules and x_functions
  std::map<std::string, CUfunction> x_functions;
  std::vector<CUdeviceptr> x_memory;
  std::vector<void*> x_host_memory;
  std::vector<CUstream> x_streams;
  std::vector<CUgraphExec> x_graphs;
  std::vector<CUevent> x_events;
};

}  // namespace cuptiprof::probes
