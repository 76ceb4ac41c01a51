#include "machine.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace sim {
namespace {

// Public data sheets; what a device record needs.
constexpr Chip kChips[] = {
    {"H100", "NVIDIA H100 80GB HBM3 (simulated)", 9, 0, 132, 1980000, 64, 32, 233472, 52428800, 3,
     85520809984ull, 3352320000ull},
    {"H200", "NVIDIA H200 (simulated)", 9, 0, 132, 1980000, 64, 32, 233472, 62914560, 3, 150754820096ull,
     4814880000ull},
    {"A100", "NVIDIA A100-SXM4-80GB (simulated)", 8, 0, 108, 1410000, 64, 32, 167936, 41943040, 3,
     85198045184ull, 2039000000ull},
    {"V100", "Tesla V100-SXM2-32GB (simulated)", 7, 0, 80, 1530000, 64, 32, 98304, 6291456, 5, 34079637504ull,
     898048000ull},
    {"L4", "NVIDIA L4 (simulated)", 8, 9, 58, 2040000, 48, 24, 102400, 50331648, 2, 23580639232ull,
     300096000ull},
    {"B200", "NVIDIA B200 (simulated)", 10, 0, 148, 1965000, 64, 32, 233472, 132120576, 4, 191503138816ull,
     7700000000ull},
};

constexpr size_t kNameSlot = 512;

thread_local uint32_t t_tid = 0;

uint64_t monotonic() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000ull + static_cast<uint64_t>(t.tv_nsec);
}

}  // namespace

const Chip& chip_named(const char* name) {
  for (const Chip& c : kChips)
    if (name && std::strcmp(c.name, name) == 0) return c;
  return kChips[0];
}

uint32_t this_thread_id() { return t_tid ? t_tid : static_cast<uint32_t>(syscall(SYS_gettid)); }
void set_this_thread_id(uint32_t tid) { t_tid = tid; }

Machine::Machine() : x_chip(&kChips[0]) {}

Machine& Machine::get() {
  static Machine* machine = new Machine;
  return *machine;
}

void Machine::reset(const cuptisim_config& c) {
  const std::lock_guard lock(x_mutex);
  x_version = c.cupti_version ? c.cupti_version : 130001;
  x_virtual = c.virtual_clock != 0;
  x_virtual_now = 1'000;  // 0 would read as "no timestamp"
  x_timestamp = nullptr;
  x_chip = &chip_named(c.chip);
  x_devices = c.num_devices ? c.num_devices : 1;
  x_latency = c.launch_latency_ns ? c.launch_latency_ns : 3000;
  x_api_ns = c.api_call_ns ? c.api_call_ns : 2000;
  seed = c.seed ? c.seed : 1;
  x_contexts.clear();
  x_primary.clear();
  x_graphs.clear();
  next_correlation = 0;
  truth.api_calls = truth.kernels = truth.memcpys = truth.memsets = truth.records_written = 0;
  truth.kernel_records_written = truth.records_dropped = truth.kernel_records_dropped = 0;
  truth.buffers_requested = truth.buffers_completed = truth.callbacks = 0;
}

uint64_t Machine::now() const {
  if (virtual_clock()) return x_virtual_now.load(std::memory_order_relaxed);
  const auto registered = x_timestamp.load(std::memory_order_relaxed);
  return registered ? registered() : monotonic();
}

void Machine::advance(uint64_t at) {
  uint64_t seen = x_virtual_now.load(std::memory_order_relaxed);
  while (seen < at && !x_virtual_now.compare_exchange_weak(seen, at)) {
  }
}

void Machine::wait_until(uint64_t at) {
  if (virtual_clock()) return advance(at);
  for (uint64_t t = now(); t < at; t = now()) {
    const uint64_t left = std::min<uint64_t>(at - t, 1000000000ull);
    const timespec pause{0, static_cast<long>(std::min<uint64_t>(left, 999999999ull))};
    nanosleep(&pause, nullptr);
  }
}

Context* Machine::context(uint32_t device, uint32_t id) {
  Context* made = nullptr;
  Context* found = nullptr;
  {
    const std::lock_guard lock(x_mutex);
    if (id == 0) {
      const auto primary = x_primary.find(device);
      if (primary != x_primary.end()) return x_contexts[primary->second].get();
      id = 1;
      while (x_contexts.contains(id)) ++id;
    }
    auto& slot = x_contexts[id];
    if (!slot) {
      slot = std::make_unique<Context>();
      slot->id = id;
      slot->device = device;
      made = slot.get();
    }
    x_primary.try_emplace(device, id);
    found = slot.get();
  }
  if (made) {
    emit_context_record(*made);
    CUpti_ResourceData data{};
    data.context = reinterpret_cast<CUcontext>(made);
    call_back(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED, &data);
  }
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

uint64_t Machine::schedule(Context* c, uint32_t stream, uint64_t earliest, uint64_t duration,
                           bool serialise) {
  const std::lock_guard lock(x_mutex);
  Stream& s = c->streams[stream];
  uint64_t start = std::max(earliest, s.busy_until);
  if (serialise) start = std::max(start, c->busy_until);
  s.busy_until = start + duration;
  c->busy_until = std::max(c->busy_until, s.busy_until);
  return start;
}

void Machine::occupy(Context* c, uint32_t stream, uint64_t end) {
  const std::lock_guard lock(x_mutex);
  Stream& s = c->streams[stream];
  s.busy_until = std::max(s.busy_until, end);
  c->busy_until = std::max(c->busy_until, end);
}

uint64_t Machine::busy_until(Context* c, uint32_t stream) {
  const std::lock_guard lock(x_mutex);
  return stream == kAllStreams ? c->busy_until : c->streams[stream].busy_until;
}

uint64_t Machine::context_busy_until(Context* c) { return busy_until(c, kAllStreams); }

const char* Machine::intern(const char* text) {
  // Callers launch the same few names again and again from the same memory: remember the last ones by
  // pointer. The text is compared, since Python reuses memory.
  struct Known {
    const char* from = nullptr;
    const char* kept = nullptr;
    uint64_t generation = 0;
  };
  thread_local Known known[256];
  if (!text) text = "";
  Known& k = known[(reinterpret_cast<uintptr_t>(text) >> 4) % 256];
  const uint64_t generation = x_names_generation.load(std::memory_order_acquire);
  if (k.from == text && k.generation == generation && std::strcmp(k.kept, text) == 0) return k.kept;
  const std::lock_guard lock(x_names_mutex);
  char*& slot = x_names[text];
  if (!slot) {
    const size_t bytes = std::strlen(text) + 1;
    if (bytes <= kNameSlot && !x_free_names.empty()) {
      slot = x_free_names.back();
      x_free_names.pop_back();
    } else {
      slot = new char[std::max(bytes, kNameSlot)];  // lives as long as the process: records point at it
    }
    std::memcpy(slot, text, bytes);
  }
  k = {text, slot, generation};
  return slot;
}

void Machine::unload_names() {
  const std::lock_guard lock(x_names_mutex);
  for (auto& [text, slot] : x_names)
    if (text.size() < kNameSlot) x_free_names.push_back(slot);
  x_names.clear();
  x_names_generation.fetch_add(1, std::memory_order_release);
}

void Machine::inject(int kind, const char* name, uint64_t a, uint64_t b, uint64_t c) {
  const std::lock_guard lock(x_fault_mutex);
  auto f = std::make_unique<Fault>();
  f->kind = kind;
  f->name = name ? name : "";
  f->a = a;
  f->b = b;
  f->c = c;
  x_faults.push_back(std::move(f));
  x_any_fault = true;
}

void Machine::clear_faults() {
  const std::lock_guard lock(x_fault_mutex);
  x_any_fault = false;
  x_faults.clear();
}

CUptiResult Machine::fail(const char* function) {
  const std::lock_guard lock(x_fault_mutex);
  for (auto& f : x_faults) {
    if (f->kind == CUPTISIM_FAULT_NO_PRIVILEGES && f->a != 0 &&
        (std::strcmp(function, "cuptiActivityEnable") == 0 || std::strcmp(function, "cuptiSubscribe") == 0))
      return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    if (f->kind == CUPTISIM_FAULT_OTHER_SUBSCRIBER && std::strcmp(function, "cuptiSubscribe") == 0)
      return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    if (f->kind != CUPTISIM_FAULT_FAIL_CALL || f->name != function) continue;
    const uint64_t call = f->seen.fetch_add(1);
    if (call >= f->b && (f->c == 0 || call < f->b + f->c)) return static_cast<CUptiResult>(f->a);
  }
  return CUPTI_SUCCESS;
}

bool Machine::strikes(int kind) {
  if (!any_fault()) return false;
  const std::lock_guard lock(x_fault_mutex);
  for (auto& f : x_faults)
    if (f->kind == kind && f->a != 0 && (f->seen.fetch_add(1) + 1) % f->a == 0) return true;
  return false;
}

const Fault* Machine::fault(int kind) {
  if (!any_fault()) return nullptr;
  const std::lock_guard lock(x_fault_mutex);
  for (auto& f : x_faults)
    if (f->kind == kind) return f.get();
  return nullptr;
}

std::vector<GraphNode>& Machine::graph(uint32_t id) {
  const std::lock_guard lock(x_mutex);
  return x_graphs[id];
}

}  // namespace sim
