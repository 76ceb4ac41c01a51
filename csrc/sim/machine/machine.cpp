#include "sim/machine/machine.h"

#include <cupti_callbacks.h>
#include <time.h>

#include <algorithm>

namespace sim {
namespace {

void raise_to(std::atomic<uint64_t>& value, uint64_t at) {
  uint64_t seen = value.load(std::memory_order_relaxed);
  while (seen < at && !value.compare_exchange_weak(seen, at)) {
  }
}

// With the defaults where it says 0.
cuptisim_config filled(cuptisim_config c) {
  if (!c.cupti_version) c.cupti_version = 130001;
  if (!c.num_devices) c.num_devices = 1;
  if (!c.launch_latency_ns) c.launch_latency_ns = 3000;
  if (!c.api_call_ns) c.api_call_ns = 2000;
  if (!c.seed) c.seed = 1;
  return c;
}

}  // namespace

Machine::Machine() : x_chip(chip_named(nullptr)) {}

Machine& Machine::get() {
  static Machine* machine = new Machine;
  return *machine;
}

bool Machine::is(const cuptisim_config& given) const {
  const cuptisim_config c = filled(given);
  return x_version == c.cupti_version && x_devices == c.num_devices && x_virtual == (c.virtual_clock != 0) &&
         x_first_seed == c.seed && x_chip == chip_named(c.chip) && x_latency == c.launch_latency_ns &&
         x_api_ns == c.api_call_ns;
}

void Machine::reset(const cuptisim_config& given) {
  const cuptisim_config c = filled(given);
  const std::lock_guard lock(x_mutex);
  x_version = c.cupti_version;
  x_virtual = c.virtual_clock != 0;
  x_virtual_now = 1'000;  // 0 would read as "no timestamp"
  x_clock.reset(x_virtual);
  x_initialised = false;
  x_chip = chip_named(c.chip);
  x_devices = c.num_devices;
  x_latency = c.launch_latency_ns;
  x_api_ns = c.api_call_ns;
  seed = x_first_seed = c.seed;
  x_generation.fetch_add(1);
  x_number.fetch_add(1);
  x_contexts.clear();
  x_destroyed.clear();
  x_primary.clear();
  x_events.clear();
  x_event_syncs = 0;
  next_correlation = 0;
  truth.api_calls = truth.kernels = truth.memcpys = truth.memsets = truth.records_written = 0;
  truth.kernel_records_written = truth.records_dropped = truth.kernel_records_dropped = 0;
  truth.buffers_requested = truth.buffers_completed = truth.callbacks = 0;
  truth.kernels_replayed = truth.bytes_saved = truth.bytes_restored = truth.ranges_collected = 0;
  truth.ranges_dropped = truth.counter_configs = truth.samples_produced = truth.samples_lost = 0;
}

uint64_t Machine::now() const {
  return virtual_clock() ? x_virtual_now.load(std::memory_order_relaxed) : monotonic();
}

void Machine::advance(uint64_t at) { raise_to(x_virtual_now, at); }

void Machine::wait_until(uint64_t at) {
  if (virtual_clock()) return advance(at);
  for (uint64_t t = now(); t < at; t = now()) {
    const timespec pause{0, static_cast<long>(std::min<uint64_t>(at - t, 999999999ull))};
    nanosleep(&pause, nullptr);
  }
}

Context* Machine::context(uint32_t device, uint32_t id) {
  // A thread launches again and again into the same context.
  thread_local struct {
    uint64_t generation = 0;
    uint32_t device = 0, id = 0;
    Context* context = nullptr;
  } last;
  const uint64_t generation = x_generation.load(std::memory_order_acquire);
  if (last.generation == generation && last.device == device && last.id == id) return last.context;
  const ContextWatch* watch = x_watch.load();
  Context* made = nullptr;
  Context* found = nullptr;
  {
    const std::lock_guard lock(x_mutex);
    uint32_t actual = id;
    if (id == 0) {
      const auto primary = x_primary.find(device);
      if (primary != x_primary.end()) {
        actual = primary->second;
      } else {
        actual = 1;
        while (x_contexts.contains(actual)) ++actual;
      }
    }
    auto& slot = x_contexts[actual];
    if (!slot) {
      slot = std::make_unique<Context>();
      slot->id = actual;
      slot->device = device;
      slot->latency = watch && watch->wants_latency();
      made = slot.get();
    }
    found = slot.get();
    if (found->device != device) return nullptr;
    x_primary.try_emplace(device, actual);
  }
  if (made && watch) watch->made(*made);
  last = {generation, device, id, found};
  return found;
}

Context* Machine::find_context(CUcontext handle) {
  const std::lock_guard lock(x_mutex);
  for (auto& [id, c] : x_contexts)
    if (reinterpret_cast<CUcontext>(c.get()) == handle) return c.get();
  return nullptr;
}

std::vector<Context*> Machine::contexts() {
  const std::lock_guard lock(x_mutex);
  std::vector<Context*> out;
  for (auto& [id, c] : x_contexts) out.push_back(c.get());
  return out;
}

void Machine::destroy_context(Context* context) {
  const std::lock_guard lock(x_mutex);
  const auto at = x_contexts.find(context->id);
  if (at == x_contexts.end() || at->second.get() != context) return;
  x_destroyed.push_back(std::move(at->second));
  x_contexts.erase(at);
  std::erase_if(x_primary, [context](const auto& p) { return p.second == context->id; });
  x_generation.fetch_add(1);
}

Stream& Machine::stream(Context* context, uint32_t id) {
  thread_local struct {
    uint64_t generation = 0;
    Context* context = nullptr;
    uint32_t id = 0;
    Stream* stream = nullptr;
  } last;
  const uint64_t generation = x_generation.load(std::memory_order_acquire);
  if (last.generation == generation && last.context == context && last.id == id) return *last.stream;
  const std::lock_guard lock(context->mutex);
  auto& slot = context->streams[id];
  if (!slot) {
    slot = std::make_unique<Stream>();
    slot->id = id;
  }
  last = {generation, context, id, slot.get()};
  return *slot;
}

const Stream* Machine::find_stream(Context* context, CUstream handle) {
  const std::lock_guard lock(context->mutex);
  for (const auto& [id, s] : context->streams)
    if (reinterpret_cast<CUstream>(s.get()) == handle) return s.get();
  return nullptr;
}

uint64_t Machine::schedule(Context* c, Stream& s, uint64_t earliest, uint64_t duration, Overlap overlap) {
  if (overlap == Overlap::kNone) {
    const std::lock_guard lock(c->mutex);
    const uint64_t start = std::max({earliest, s.busy_until.load(), c->busy_until.load()});
    raise_to(s.busy_until, start + duration);
    raise_to(c->busy_until, start + duration);
    return start;
  }
  uint64_t busy = s.busy_until.load(std::memory_order_relaxed);
  uint64_t start = std::max(earliest, busy);
  while (!s.busy_until.compare_exchange_weak(busy, start + duration)) start = std::max(earliest, busy);
  raise_to(c->busy_until, start + duration);
  return start;
}

bool Machine::queue(Stream& s, uint64_t now, uint64_t end) {
  if (virtual_clock()) return false;
  auto& place = s.ends[s.launches.fetch_add(1, std::memory_order_relaxed) % kPendingLaunches];
  const uint64_t before = place.exchange(end, std::memory_order_relaxed);
  if (before <= now) return false;
  wait_until(before);
  return true;
}

void Machine::occupy(Context* c, Stream& s, uint64_t end) {
  raise_to(s.busy_until, end);
  raise_to(c->busy_until, end);
}

Event Machine::record_event(uint32_t id, uint64_t at, uint32_t capture) {
  const std::lock_guard lock(x_mutex);
  return x_events[id] = {at, ++x_event_syncs, capture};
}

Event Machine::event(uint32_t id) {
  const std::lock_guard lock(x_mutex);
  const auto at = x_events.find(id);
  return at == x_events.end() ? Event{} : at->second;
}

}  // namespace sim
