// The simulated machine: clock, devices, contexts, streams, events, and what really happened.
//
// One a process. Any thread may call in, and must be Inside (inside.h) while it holds what it was given:
// reset() frees contexts and streams, and is called by one that is Alone.
#pragma once
#include <cuda.h>
#include <cupti_activity.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "sim/cuptisim.h"
#include "sim/machine/recent_work.h"
#include "sim/machine/record_clock.h"

namespace sim {

// A product, not CUPTI's chip (counter_units.h): H100 and H200 have the same.
struct Chip {
  const char* name;
  const char* product;
  uint32_t major, minor, sms, clock_khz, warps_per_sm, blocks_per_sm;
  uint32_t shared_per_sm, l2_bytes, copy_engines;
  uint64_t memory_bytes, bandwidth_kb;
};
// nullptr: no such chip. No name: H100.
const Chip* chip_named(const char* name);

constexpr uint32_t kDefaultStream = 7;  // its ID in NVIDIA's records

constexpr size_t kPendingLaunches = 1024;  // that a stream takes before a launch waits

struct Stream {
  uint32_t id;
  std::atomic<uint64_t> busy_until{0};
  std::atomic<uint64_t> launches{0};
  std::array<std::atomic<uint64_t>, kPendingLaunches> ends{};  // of the last launches
  std::atomic<bool> created{false};                            // by the program, not by use
  uint32_t priority = 0;                                       // of a created one
};

struct Context {
  uint32_t id;
  uint32_t device;
  std::atomic<uint64_t> busy_until{0};
  bool latency = false;                                 // made while latency timestamps were on
  std::atomic<uint64_t> kinds{0};                       // bit per kind that cuptiActivityEnableContext set
  std::mutex mutex;                                     // guards `streams`; serialised kernels queue on it
  std::map<uint32_t, std::unique_ptr<Stream>> streams;  // a Stream stays where it is
  RecentWork recent;                                    // kept while a range profiler is enabled
};

struct Event {
  uint64_t at = 0;       // when the work recorded in it ends
  uint64_t sync_id = 0;  // which recording of it
  uint32_t capture = 0;  // recorded in a stream that was being captured into this graph
};

// Whether a kernel may run beside others of its context.
enum class Overlap { kAllowed, kNone };

// Who is told of contexts as they come to be: those who write records of them. Called on the thread that
// makes one; `made` with no lock held.
struct ContextWatch {
  bool (*wants_latency)();  // Context::latency
  void (*made)(Context&);
};

class Machine {
 public:
  // Never destroyed, like all here that threads share: the program's and our own still call in while the
  // process ends.
  static Machine& get();
  void set_watch(const ContextWatch* watch) { x_watch = watch; }  // lives on
  // The caller is Alone.
  void reset(const cuptisim_config& config);
  // It is configured so.
  bool is(const cuptisim_config& config) const;
  // Grows with each reset.
  uint64_t number() const { return x_number.load(std::memory_order_relaxed); }

  uint32_t version() const { return x_version.load(std::memory_order_relaxed); }
  bool virtual_clock() const { return x_virtual.load(std::memory_order_relaxed); }
  // The machine's own time: what it schedules by.
  uint64_t now() const;
  RecordClock& clock() { return x_clock; }
  void advance(uint64_t at);
  // Host time until the clock passes `at`: a jump under the virtual clock, a real wait otherwise.
  void wait_until(uint64_t at);
  // CUDA is up: cuInit was called, or a context made.
  bool initialised() const { return x_initialised.load(); }
  // False: it was up already.
  bool initialise() { return !x_initialised.exchange(true); }

  // Context `id` on `device`, made if new (0: the device's primary one), with its CONTEXT record and
  // callbacks. nullptr: that context is another device's.
  Context* context(uint32_t device, uint32_t id);
  // nullptr: no such context, or none any more.
  Context* find_context(CUcontext handle);
  std::vector<Context*> contexts();
  void destroy_context(Context* context);
  Stream& stream(Context* context, uint32_t id);
  const Stream* find_stream(Context* context, CUstream handle);

  // Places work of `duration` on a stream after `earliest`; returns its start.
  uint64_t schedule(Context* context, Stream& stream, uint64_t earliest, uint64_t duration, Overlap overlap);
  // A launch at `now` that ends at `end`: waits while too many before it are pending, unless the clock is
  // virtual. Whether it waited.
  bool queue(Stream& stream, uint64_t now, uint64_t end);
  // The stream does nothing else before `end`.
  void occupy(Context* context, Stream& stream, uint64_t end);

  Event record_event(uint32_t id, uint64_t at, uint32_t capture);
  Event event(uint32_t id);

  const Chip& chip() const { return *x_chip; }
  uint32_t devices() const { return x_devices; }
  uint64_t launch_latency() const { return x_latency; }
  uint32_t api_call_ns() const { return x_api_ns; }

  // Written by whoever calls in.
  std::atomic<uint32_t> next_correlation{0};  // the last that was given
  struct {                                    // as cuptisim_truth

    std::atomic<uint64_t> api_calls{0}, kernels{0}, memcpys{0}, memsets{0}, records_written{0},
        kernel_records_written{0}, records_dropped{0}, kernel_records_dropped{0}, buffers_requested{0},
        buffers_completed{0}, callbacks{0}, kernels_replayed{0}, bytes_saved{0}, bytes_restored{0},
        ranges_collected{0}, ranges_dropped{0}, counter_configs{0}, samples_produced{0}, samples_lost{0};
  } truth;
  std::atomic<uint64_t> seed{1};  // of the next shuffle

 private:
  std::atomic<uint32_t> x_version{130001};
  std::atomic<bool> x_virtual{false};
  std::atomic<bool> x_initialised{false};
  std::atomic<uint64_t> x_virtual_now{0};
  std::atomic<uint64_t> x_number{1};
  uint64_t x_first_seed = 1;
  std::atomic<const ContextWatch*> x_watch{nullptr};
  RecordClock x_clock;
  const Chip* x_chip;
  uint32_t x_devices = 1;
  uint64_t x_latency = 3000;
  uint32_t x_api_ns = 2000;
  std::atomic<uint64_t> x_generation{1};  // changes when a remembered Context may be gone
  std::mutex x_mutex;                     // guards the rest
  std::map<uint32_t, std::unique_ptr<Context>> x_contexts;
  // Until reset: late users of a handle find it dead, not gone.
  std::vector<std::unique_ptr<Context>> x_destroyed;
  std::map<uint32_t, uint32_t> x_primary;  // device -> context
  std::map<uint32_t, Event> x_events;
  uint64_t x_event_syncs = 0;

  Machine();
};

// Thread and process IDs as records carry them.
// `system`: the system's, as cuptiSetThreadIdType asks for; else what CUPTI gives unasked.
uint32_t this_thread_id(bool system);
void set_this_thread_id(uint32_t tid);
uint32_t this_process_id();

}  // namespace sim

#define SIM_EXPORT extern "C" __attribute__((visibility("default")))
