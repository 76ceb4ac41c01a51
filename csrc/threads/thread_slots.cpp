#include "threads/thread_slots.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <mutex>

#include "base/error.h"

namespace cuptiprof {
namespace {

ThreadSlot g_slots[kMaxThreads];
std::atomic<uint32_t> g_used{0};
Event* g_rings = nullptr;
pthread_key_t g_key;

// initial-exec: one load, and never an allocation in a callback, as a library's thread-locals otherwise may
// need.
thread_local ThreadSlot* t_slot [[gnu::tls_model("initial-exec")]] = nullptr;
thread_local uint32_t t_slotless_nodes [[gnu::tls_model("initial-exec")]] = 0;
// As set_thread_id() was told; 0: the system's.
thread_local uint32_t t_shown_tid [[gnu::tls_model("initial-exec")]] = 0;

// A pthread key rather than a C++ thread_local destructor: registering the latter allocates, and this runs in
// callbacks.
void thread_ended(void* slot) {
  t_slot = nullptr;
  static_cast<ThreadSlot*>(slot)->state.store(SlotState::kThreadEnded, std::memory_order_release);
}

uint32_t own_tid() noexcept { return t_shown_tid ? t_shown_tid : static_cast<uint32_t>(syscall(SYS_gettid)); }

// torch names its autograd threads when they start.
bool is_worker() noexcept {
  char name[16] = "";
  return prctl(PR_GET_NAME, name) == 0 && std::string_view(name).starts_with(kAutogradThread);
}

// Null: reserve_thread_slots() was not called yet, or every slot is taken.
ThreadSlot* claim() noexcept {
  if (!g_rings) return nullptr;
  for (uint32_t i = 0; i < kMaxThreads; ++i) {
    SlotState free = SlotState::kFree;
    ThreadSlot& slot = g_slots[i];
    if (slot.state.load(std::memory_order_relaxed) != SlotState::kFree) continue;
    if (!slot.state.compare_exchange_strong(free, SlotState::kInUse, std::memory_order_acq_rel)) continue;
    slot.open_regions = 0;
    slot.nodes_created = 0;
    slot.next_wake = slot.ring.pushed() + kWakeEvents;
    slot.left_elsewhere.store(0, std::memory_order_relaxed);
    slot.in_backward.store(0, std::memory_order_relaxed);
    slot.works_for = 0;
    slot.is_worker.store(is_worker(), std::memory_order_relaxed);
    slot.open.clear();
    slot.scopes.clear();
    slot.operators.clear();
    slot.torch_thread.store(0, std::memory_order_relaxed);
    slot.counted_by.store(nullptr);
    slot.launching.store(nullptr);
    slot.observing.store(false);
    slot.counted_regions = 0;
    slot.tid.store(own_tid(), std::memory_order_relaxed);
    slot.claims.fetch_add(1, std::memory_order_relaxed);
    uint32_t used = g_used.load(std::memory_order_relaxed);
    while (used < i + 1 && !g_used.compare_exchange_weak(used, i + 1, std::memory_order_release)) {
    }
    t_slot = &slot;
    pthread_setspecific(g_key, &slot);
    return &slot;
  }
  return nullptr;
}

}  // namespace

void reserve_thread_slots() {
  static std::mutex once;  // guards the one-time set-up below
  const std::lock_guard lock(once);
  if (g_rings) return;
  const size_t bytes = sizeof(Event) * kRingEvents * kMaxThreads;
  void* memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw Error(ErrorKind::kBudget, "cannot reserve 1 GiB of address space for event rings",
                "raise the address space limit (ulimit -v)");
  if (pthread_key_create(&g_key, &thread_ended) != 0) {
    munmap(memory, bytes);
    throw Error(ErrorKind::kGeneric, "no pthread key left",
                "too many libraries in this process use thread keys");
  }
  auto* rings = static_cast<Event*>(memory);
  for (uint32_t i = 0; i < kMaxThreads; ++i) {
    g_slots[i].index = i;
    g_slots[i].ring.attach(rings + size_t{i} * kRingEvents, kRingEvents);
  }
  g_rings = rings;
}

ThreadSlot* this_thread_slot() noexcept { return t_slot ? t_slot : claim(); }

uint32_t& slotless_nodes() noexcept { return t_slotless_nodes; }

ThreadSlot& thread_slot(uint32_t index) noexcept { return g_slots[index]; }

uint32_t thread_slot_count() noexcept { return g_used.load(std::memory_order_acquire); }

void recycle_slot(ThreadSlot& slot) noexcept {
  madvise(g_rings + (&slot - g_slots) * kRingEvents, sizeof(Event) * kRingEvents, MADV_DONTNEED);
  slot.state.store(SlotState::kFree, std::memory_order_release);
}

void set_thread_id(uint32_t tid) noexcept {
  t_shown_tid = tid;
  ThreadSlot* slot = this_thread_slot();
  if (!slot) return;
  slot->tid.store(own_tid(), std::memory_order_relaxed);
  // What a thread was handed can claim its slot before it has its name.
  slot->is_worker.store(is_worker(), std::memory_order_relaxed);
}

}  // namespace cuptiprof
