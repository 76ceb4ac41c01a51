#include "sim/activity/buffers.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

#include "sim/activity/clients.h"
#include "sim/activity/delivery.h"
#include "sim/activity/record_sizes.h"
#include "sim/activity/wanted_records.h"
#include "sim/machine/faults.h"
#include "sim/machine/machine.h"

namespace sim {
namespace {

struct Held {  // a late record
  std::vector<uint8_t> bytes;
  uint64_t complete_at;
  uint64_t after;  // how many its thread must have written first
};

constexpr size_t kLargestRecord = 512;  // bytes, of those that are changed on their way

struct ThreadBuffer {
  std::mutex mutex;  // guards the rest; as in the real library it is held while a buffer is requested
  Buffer buffer;
  std::vector<Held> held;
  uint64_t written = 0;
};

std::atomic<CUpti_BuffersCallbackRequestFunc> g_request{nullptr};

// What a client's records go into.
struct Target {
  std::atomic<SharedRequest> request{nullptr};  // of a subscriber among several
  std::atomic<uint64_t> dropped{0};
  std::atomic<bool> per_thread{true};
  std::atomic<bool> cleared_by_client{false};  // ZEROED_OUT_ACTIVITY_BUFFER
  std::mutex mutex;                            // guards the list
  std::vector<std::shared_ptr<ThreadBuffer>> list;
  std::shared_ptr<ThreadBuffer> shared;  // when buffers are not per thread
};
Target& target(uint32_t client) {
  static auto* targets = new Target[kClients];  // never destroyed (Machine::get)
  return targets[client];
}

thread_local std::shared_ptr<ThreadBuffer> t_buffers[kClients];

bool is_kernel(const void* record) {
  const auto kind = static_cast<const CUpti_Activity*>(record)->kind;
  return kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || kind == CUPTI_ACTIVITY_KIND_KERNEL;
}

ThreadBuffer& this_buffer(uint32_t client) {
  Target& all = target(client);
  auto& t_buffer = t_buffers[client];
  if (!all.per_thread.load(std::memory_order_relaxed)) {
    const std::lock_guard lock(all.mutex);
    if (!all.shared) all.list.push_back(all.shared = std::make_shared<ThreadBuffer>());
    return *all.shared;
  }
  if (!t_buffer) {
    t_buffer = std::make_shared<ThreadBuffer>();
    const std::lock_guard lock(all.mutex);
    // Threads that ended with nothing left in their buffer are forgotten here.
    std::erase_if(all.list, [](const auto& t) {
      if (t.use_count() != 1) return false;
      const std::lock_guard theirs(t->mutex);
      return !t->buffer.data && t->held.empty();
    });
    all.list.push_back(t_buffer);
  }
  return *t_buffer;
}

std::vector<std::shared_ptr<ThreadBuffer>> all_buffers(uint32_t client) {
  const std::lock_guard lock(target(client).mutex);
  return target(client).list;
}

void drop(uint32_t client, const void* record) {
  Machine& m = Machine::get();
  target(client).dropped.fetch_add(1);
  m.truth.records_dropped.fetch_add(1);
  if (is_kernel(record)) m.truth.kernel_records_dropped.fetch_add(1);
}

// Fields that are 0 are left as they lie in the buffer, which the client promised to hand over cleared, or
// which request_buffer cleared: what CUPTI leaves unwritten nobody knows, so it is everything here.
void write_fields(uint8_t* to, const void* record, size_t bytes) {
  const auto* from = static_cast<const uint8_t*>(record);
  for (size_t at = 0; at + sizeof(uint32_t) <= bytes; at += sizeof(uint32_t)) {
    uint32_t field, old;
    std::memcpy(&field, from + at, sizeof field);
    std::memcpy(&old, to + at, sizeof old);
    if (field == 0) field = old;
    std::memcpy(to + at, &field, sizeof field);
  }
}

void put(Buffer& b, const void* record, size_t bytes, size_t stride, uint64_t complete_at) {
  Machine& m = Machine::get();
  alignas(8) uint8_t stamped[kLargestRecord];
  if (RecordClock& clock = clock_of(b.client); clock.changes_records() && bytes <= sizeof stamped) {
    std::memcpy(stamped, record, bytes);
    clock.stamp(reinterpret_cast<CUpti_Activity*>(stamped));
    record = stamped;
  }
  write_fields(b.data + b.used, record, std::min(bytes, stride));
  b.used += stride;
  ++b.records;
  b.complete_at = std::max(b.complete_at, complete_at);
  m.truth.records_written.fetch_add(1, std::memory_order_relaxed);
  if (is_kernel(record)) m.truth.kernel_records_written.fetch_add(1, std::memory_order_relaxed);
}

void put_overhead(Buffer& b, CUpti_ActivityOverheadKind kind, uint64_t start) {
  const size_t n = stride(CUPTI_ACTIVITY_KIND_OVERHEAD, Machine::get().version());
  if (!b.has_room(n)) return;
  CUpti_ActivityOverhead3 r{};
  r.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
  r.overheadKind = kind;
  r.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
  r.objectId.pt.processId = this_process_id();
  r.objectId.pt.threadId = this_thread_id(system_thread_ids(b.client));
  r.start = start;
  r.end = Machine::get().now();
  put(b, &r, sizeof r, n, 0);
}

// A fresh buffer from the profiler with room for `bytes`; false: there is none.
bool request_buffer(Buffer& b, uint32_t client, size_t bytes) {
  Machine& m = Machine::get();
  b = {};
  b.client = client;
  if (client != 0) {
    size_t info = sizeof info;  // CUpti_BufferCallbackRequestInfo
    const auto request = target(client).request.load(std::memory_order_relaxed);
    if (request) request(&b.data, &b.size, &b.max_records, &info);
  } else if (const auto request = g_request.load(std::memory_order_relaxed)) {
    request(&b.data, &b.size, &b.max_records);
  }
  m.truth.buffers_requested.fetch_add(1, std::memory_order_relaxed);
  if (!b.data) return false;
  note_requested();
  if (!target(client).cleared_by_client.load(std::memory_order_relaxed)) std::memset(b.data, 0, b.size);
  if (b.size >= bytes) return true;
  complete_later(b);  // too small for anything: it goes back empty
  b = {};
  return false;
}

void append(uint32_t client, ThreadBuffer& t, const void* record, size_t bytes, uint64_t complete_at) {
  Machine& m = Machine::get();
  const size_t n = stride(static_cast<const CUpti_Activity*>(record)->kind, m.version());
  if (n == 0) return;  // a kind that the emulated version does not write
  Buffer& b = t.buffer;
  if (!b.data || !b.has_room(n)) {
    const bool overhead = kind_enabled(CUPTI_ACTIVITY_KIND_OVERHEAD, client);
    const uint64_t start = overhead ? m.now() : 0;
    const bool flushed = b.data != nullptr;
    if (flushed) complete_later(b);
    const uint64_t requested = overhead ? m.now() : 0;
    if (!request_buffer(b, client, n)) return drop(client, record);
    if (overhead) {
      put_overhead(b,
                   m.version() >= 130000 ? CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST
                                         : CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE,
                   requested);
      if (flushed) put_overhead(b, CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH, start);
      if (!b.has_room(n)) return drop(client, record);
    }
  }
  put(b, record, bytes, n, complete_at);
  ++t.written;
}

void release_held(uint32_t client, ThreadBuffer& t) {
  for (const Held& h : t.held) append(client, t, h.bytes.data(), h.bytes.size(), h.complete_at);
  t.held.clear();
}

void emit_to(uint32_t client, const void* record, size_t bytes, uint64_t complete_at) {
  ThreadBuffer& t = this_buffer(client);
  const std::lock_guard lock(t.mutex);
  if (any_fault()) {
    if (strikes(CUPTISIM_FAULT_DROP_RECORDS)) return drop(client, record);
    if (const auto late = strikes(CUPTISIM_FAULT_LATE_RECORDS)) {
      const auto* from = static_cast<const uint8_t*>(record);
      t.held.push_back({{from, from + bytes}, complete_at, t.written + late->b});
      return;
    }
  }
  append(client, t, record, bytes, complete_at);
  while (!t.held.empty() && t.held.front().after <= t.written) {
    const Held h = std::move(t.held.front());
    t.held.erase(t.held.begin());
    append(client, t, h.bytes.data(), h.bytes.size(), h.complete_at);
  }
}

// The record as the settings of this subscriber want it, in memory of its own: what it points at and a client
// frees is copied for all but the first who get it.
void fit(uint32_t client, CUpti_Activity* record, bool first) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      auto& k = *reinterpret_cast<CUpti_ActivityKernel10*>(record);
      if (!latency_timestamps(client)) k.queued = k.submitted = 0;
      return;
    }
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: {
      auto& a = *reinterpret_cast<CUpti_ActivityAPI*>(record);
      if (a.threadId == this_thread_id()) a.threadId = this_thread_id(system_thread_ids(client));
      return;
    }
    case CUPTI_ACTIVITY_KIND_DEVICE: {
      auto& d = *reinterpret_cast<CUpti_ActivityDevice5*>(record);
      if (!first) d.name = strdup(d.name);
      return;
    }
    case CUPTI_ACTIVITY_KIND_OVERHEAD: {
      auto& o = *reinterpret_cast<CUpti_ActivityOverhead3*>(record);
      if (first || !o.overheadData) return;
      o.overheadData = std::malloc(sizeof(CUpti_ActivityOverheadCommandBufferFullData));
      return;
    }
    default:
      return;
  }
}

}  // namespace

void emit(const void* record, size_t bytes, uint64_t complete_at) {
  if (!sharing()) return emit_to(0, record, bytes, complete_at);
  bool first = true;
  const std::optional<uint32_t> only = only_for();
  for (uint32_t i = 1; i < kClients; ++i) {
    if (!client(i).alive || !wants(i, static_cast<const CUpti_Activity*>(record))) continue;
    if (only && *only != i) continue;
    alignas(8) uint8_t copy[kLargestRecord];
    std::memcpy(copy, record, std::min(bytes, sizeof copy));
    fit(i, reinterpret_cast<CUpti_Activity*>(copy), std::exchange(first, false));
    emit_to(i, copy, bytes, complete_at);
  }
}

void set_per_thread_buffers(uint32_t client, bool on) { target(client).per_thread = on; }

void set_cleared_by_client(uint32_t client, bool on) { target(client).cleared_by_client = on; }

void set_request_callback(uint32_t client, SharedRequest request) { target(client).request = request; }

uint64_t take_dropped(uint32_t client) { return target(client).dropped.exchange(0); }

void forget_buffers(uint32_t client) {
  if (client == 0) return g_request.store(nullptr);
  target(client).request = nullptr;
  for (const auto& t : all_buffers(client)) {
    Buffer b;
    {
      const std::lock_guard lock(t->mutex);
      std::swap(b, t->buffer);
      t->held.clear();
    }
    b.used = 0;
    if (b.data) complete_now(b, kAllDone);
  }
  set_complete_callback(client, nullptr);
}

void discard_buffers() {
  for (const auto& t : all_buffers(0)) {
    Buffer b;
    {
      const std::lock_guard lock(t->mutex);
      std::swap(b, t->buffer);
      t->held.clear();
      t->written = 0;
    }
    b.used = 0;
    if (b.data) complete_now(b, kAllDone);
  }
  discard_pending();
  for (uint32_t i = 0; i < kClients; ++i) target(i).dropped = 0;
}

}  // namespace sim

using namespace sim;

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                                               CUpti_BuffersCallbackCompleteFunc complete) {
  SIM_FAULTS("cuptiActivityRegisterCallbacks");
  if (!request || !complete) return CUPTI_ERROR_INVALID_PARAMETER;
  SIM_ALONE;
  g_request = request;
  set_complete_callback(complete);
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t flag) {
  SIM_FAULTS("cuptiActivityFlushAll");
  bool registered = g_request.load() != nullptr;
  for (uint32_t i = 1; i < kClients; ++i) registered = registered || target(i).request.load();
  if (!registered) return CUPTI_ERROR_INVALID_OPERATION;
  const bool forced = (flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0;
  const uint64_t now = Machine::get().now();
  // Everybody's: a subscriber cannot flush its own alone.
  for (uint32_t i = 0; i < kClients; ++i)
    for (const auto& t : all_buffers(i)) {
      Buffer ready;
      {
        const std::lock_guard lock(t->mutex);
        release_held(i, *t);
        if (!t->buffer.data || (!forced && t->buffer.complete_at > now)) continue;
        std::swap(ready, t->buffer);
      }
      complete_now(ready, now);
    }
  complete_pending(now, forced);
  return CUPTI_SUCCESS;
}

// Buffers belong to threads here, not to contexts or streams, so that this is the same.
SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityFlush(CUcontext, uint32_t, uint32_t flag) {
  return cuptiActivityFlushAll(flag);
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid,
                                                           CUpti_Activity** record) {
  SIM_FAILURE("cuptiActivityGetNextRecord");  // reads a buffer, not the machine
  if (sharing()) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  return next_record(buffer, valid, record);
}

CUptiResult sim::next_record(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
  if (!buffer || !record) return CUPTI_ERROR_INVALID_PARAMETER;
  const uint32_t version = Machine::get().version();
  size_t at = 0;
  if (*record) {
    const size_t step = stride((*record)->kind, version);
    if (step == 0) return CUPTI_ERROR_INVALID_KIND;
    at = static_cast<size_t>(reinterpret_cast<uint8_t*>(*record) - buffer) + step;
  }
  if (at >= valid || valid - at < sizeof(CUpti_Activity)) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  auto* next = reinterpret_cast<CUpti_Activity*>(buffer + at);
  const size_t size = stride(next->kind, version);
  if (size == 0) return CUPTI_ERROR_INVALID_KIND;
  if (size > valid - at) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = next;
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
  SIM_FAULTS("cuptiActivityGetNumDroppedRecords");
  if (!dropped) return CUPTI_ERROR_INVALID_PARAMETER;
  SIM_ALONE;
  *dropped = take_dropped(0);
  return CUPTI_SUCCESS;
}
