// The simulated machine: clock, devices, contexts, streams, faults, and what really happened.
#pragma once
#include <cuda.h>
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cuptisim.h"

namespace sim {

struct Chip {
  const char* name;
  const char* product;
  uint32_t major, minor, sms, clock_khz, warps_per_sm, blocks_per_sm;
  uint32_t shared_per_sm, l2_bytes, copy_engines;
  uint64_t memory_bytes, bandwidth_kb;
};
const Chip& chip_named(const char* name);

struct Stream {
  uint32_t id;
  uint64_t busy_until = 0;
};

struct Context {
  uint32_t id;
  uint32_t device;
  std::map<uint32_t, Stream> streams;
  uint64_t busy_until = 0;
};

struct GraphNode {
  cuptisim_op op;
  uint64_t id;
};

struct Fault {
  int kind;
  std::string name;
  uint64_t a, b, c;
  std::atomic<uint64_t> seen{0};
};

class Machine {
 public:
  static Machine& get();
  void reset(const cuptisim_config& config);

  uint32_t version() const { return x_version.load(std::memory_order_relaxed); }
  bool virtual_clock() const { return x_virtual.load(std::memory_order_relaxed); }
  uint64_t now() const;
  void advance(uint64_t at);
  // Host time until the clock passes `at`: a jump under the virtual clock, a real wait otherwise.
  void wait_until(uint64_t at);
  void set_timestamp_callback(CUpti_TimestampCallbackFunc f) { x_timestamp.store(f); }

  // Context `id` on `device`, made if new (0: the device's primary one). Emits CONTEXT records and callbacks.
  Context* context(uint32_t device, uint32_t id);
  Context* find_context(CUcontext handle);
  std::vector<Context*> contexts();
  // Places work of `duration` on a stream after `earliest`; returns start.
  uint64_t schedule(Context* context, uint32_t stream, uint64_t earliest, uint64_t duration, bool serialise);
  // Explicit times: the stream is busy at least until `end`.
  void occupy(Context* context, uint32_t stream, uint64_t end);
  uint64_t busy_until(Context* context, uint32_t stream_or_all);
  static constexpr uint32_t kAllStreams = 0xffffffff;
  uint64_t context_busy_until(Context* context);

  const char* intern(const char* text);
  // A module was unloaded: its names are gone and their memory serves the next new names, so that a pointer
  // kept from an earlier record may now lead to another text.
  void unload_names();
  const Chip& chip() const { return *x_chip; }
  uint32_t devices() const { return x_devices; }
  uint64_t launch_latency() const { return x_latency; }
  uint32_t api_call_ns() const { return x_api_ns; }

  // Faults. fail(): the code a CUPTI function must return now, or CUPTI_SUCCESS.
  void inject(int kind, const char* name, uint64_t a, uint64_t b, uint64_t c);
  void clear_faults();
  CUptiResult fail(const char* function);
  // True every a-th time for the fault of this kind.
  bool strikes(int kind);
  const Fault* fault(int kind);
  bool any_fault() const { return x_any_fault.load(std::memory_order_relaxed); }

  std::vector<GraphNode>& graph(uint32_t id);
  uint64_t next_graph_node() { return x_graph_nodes.fetch_add(1) + 1; }

  std::atomic<uint32_t> next_correlation{0};
  struct {
    std::atomic<uint64_t> api_calls{0}, kernels{0}, memcpys{0}, memsets{0}, records_written{0},
        kernel_records_written{0}, records_dropped{0}, kernel_records_dropped{0}, buffers_requested{0},
        buffers_completed{0}, callbacks{0};
  } truth;
  std::atomic<uint64_t> seed{1};

 private:
  std::atomic<uint32_t> x_version{130001};
  std::atomic<bool> x_virtual{false};
  std::atomic<uint64_t> x_virtual_now{0};
  std::atomic<CUpti_TimestampCallbackFunc> x_timestamp{nullptr};
  const Chip* x_chip = nullptr;
  uint32_t x_devices = 1;
  uint64_t x_latency = 3000;
  uint32_t x_api_ns = 2000;
  std::mutex x_mutex;  // guards contexts, streams and graphs
  std::map<uint32_t, std::unique_ptr<Context>> x_contexts;
  std::map<uint32_t, uint32_t> x_primary;
  std::map<uint32_t, std::vector<GraphNode>> x_graphs;
  std::atomic<uint64_t> x_graph_nodes{0};
  std::mutex x_names_mutex;  // guards the two below
  std::unordered_map<std::string, char*> x_names;
  std::vector<char*> x_free_names;  // slots of kNameSlot bytes
  std::atomic<uint64_t> x_names_generation{0};
  std::mutex x_fault_mutex;  // guards x_faults
  std::vector<std::unique_ptr<Fault>> x_faults;
  std::atomic<bool> x_any_fault{false};

  Machine();
};

uint32_t this_thread_id();
void set_this_thread_id(uint32_t tid);

// activity.cpp
void emit(const void* record, size_t bytes, uint64_t complete_at);
bool kind_enabled(CUpti_ActivityKind kind);
bool api_record_wanted(bool driver, CUpti_CallbackId cbid);
bool activity_in_use();
void emit_device_records();
void emit_context_record(const Context& c);
void emit_external_correlation(uint32_t correlation);
uint32_t buffers_outstanding();

// callbacks.cpp
bool subscribed();
bool callback_enabled(CUpti_CallbackDomain domain, CUpti_CallbackId cbid);
void call_back(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data);

}  // namespace sim

#define SIM_EXPORT extern "C" __attribute__((visibility("default")))
#define SIM_FAULTS(function)             \
  if (::sim::Machine::get().any_fault()) \
    if (CUptiResult failed = ::sim::Machine::get().fail(function); failed != CUPTI_SUCCESS) return failed
