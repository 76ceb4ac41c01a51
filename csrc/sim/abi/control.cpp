// The control side of the stand-in (cuptisim.h).
#include "sim/abi/primary_contexts.h"
#include "sim/activity/buffers.h"
#include "sim/activity/callbacks.h"
#include "sim/activity/clients.h"
#include "sim/activity/wanted_records.h"
#include "sim/calls/graphs.h"
#include "sim/counters/counter_model.h"
#include "sim/counters/counting.h"
#include "sim/machine/faults.h"
#include "sim/machine/inside.h"
#include "sim/machine/machine.h"

using namespace sim;

namespace {

// Calls are short, or wait for the simulated GPU; who waits longer than this is told that it is in use.
constexpr std::chrono::milliseconds kWaitForOthers{2000};

std::atomic<uint32_t> g_opened{0};  // changes inside the machine, or alone in it

bool in_use() { return g_opened != 0 || subscribed() || activity_in_use() || counters_started(); }

bool valid(const cuptisim_config* config) {
  return config && config->size == sizeof(cuptisim_config) && chip_named(config->chip);
}

void reset(const cuptisim_config& config) {
  drop_profilers();
  clear_given_counters();
  clear_faults();
  discard_buffers();
  forget_clients();
  reset_activity_settings(0);
  clear_graphs();
  forget_primary_contexts();
  Machine::get().reset(config);
}

}  // namespace

SIM_EXPORT int cuptisim_reset(const cuptisim_config* config) {
  if (!valid(config)) return CUDA_ERROR_INVALID_VALUE;
  {
    const Inside inside;
    if (in_use()) return CUDA_ERROR_ALREADY_MAPPED;  // without keeping anybody out
  }
  const Alone alone(kWaitForOthers);
  if (!alone) return CUDA_ERROR_NOT_READY;
  if (in_use()) return CUDA_ERROR_ALREADY_MAPPED;
  reset(*config);
  return CUDA_SUCCESS;
}

SIM_EXPORT int cuptisim_open(const cuptisim_config* config) {
  if (!valid(config)) return CUDA_ERROR_INVALID_VALUE;
  {
    const Inside inside;
    if (Machine::get().is(*config)) {
      ++g_opened;
      return CUDA_SUCCESS;
    }
    if (in_use()) return CUDA_ERROR_ALREADY_MAPPED;
  }
  const Alone alone(kWaitForOthers);
  if (!alone) return CUDA_ERROR_NOT_READY;
  if (!Machine::get().is(*config)) {  // nobody was faster
    if (in_use()) return CUDA_ERROR_ALREADY_MAPPED;
    reset(*config);
  }
  ++g_opened;
  return CUDA_SUCCESS;
}

SIM_EXPORT void cuptisim_close() { --g_opened; }

SIM_EXPORT uint64_t cuptisim_now() { return Machine::get().now(); }

SIM_EXPORT void cuptisim_advance(uint64_t at) { Machine::get().advance(at); }

SIM_EXPORT void cuptisim_set_thread(uint32_t tid) { set_this_thread_id(tid); }

SIM_EXPORT uint64_t cuptisim_event_time(uint32_t event) { return Machine::get().event(event).at; }

SIM_EXPORT int cuptisim_inject(int fault, const char* name, uint64_t a, uint64_t b, uint64_t c) {
  if (fault < CUPTISIM_FAULT_FAIL_CALL || fault >= CUPTISIM_FAULT_END) return CUDA_ERROR_INVALID_VALUE;
  inject(fault, name, a, b, c);
  return CUDA_SUCCESS;
}

SIM_EXPORT void cuptisim_clear_faults() { clear_faults(); }

SIM_EXPORT void cuptisim_get_truth(cuptisim_truth* out) {
  const Inside inside;
  if (!out || out->size != sizeof(cuptisim_truth)) return;
  const auto& t = Machine::get().truth;
  out->buffers_outstanding = buffers_outstanding();
  out->api_calls = t.api_calls;
  out->kernels = t.kernels;
  out->memcpys = t.memcpys;
  out->memsets = t.memsets;
  out->records_written = t.records_written;
  out->kernel_records_written = t.kernel_records_written;
  out->records_dropped = t.records_dropped;
  out->kernel_records_dropped = t.kernel_records_dropped;
  out->buffers_requested = t.buffers_requested;
  out->buffers_completed = t.buffers_completed;
  out->callbacks = t.callbacks;
  out->kernels_replayed = t.kernels_replayed;
  out->bytes_saved = t.bytes_saved;
  out->bytes_restored = t.bytes_restored;
  out->ranges_collected = t.ranges_collected;
  out->ranges_dropped = t.ranges_dropped;
  out->counter_configs = t.counter_configs;
  out->samples_produced = t.samples_produced;
  out->samples_lost = t.samples_lost;
}
