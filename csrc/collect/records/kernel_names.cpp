#include "collect/records/kernel_names.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace cuptiprof {

void KernelNames::reset() {
  constexpr size_t bytes = kSlots * sizeof(Slot) + kTextBytes;
  if (!x_slots) {
    void* memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      throw Error(ErrorKind::kBudget, "cannot map 9 MiB of address space for kernel names",
                  "raise ulimit -v");
    x_texts = static_cast<char*>(memory) + kSlots * sizeof(Slot);
    x_slots = static_cast<Slot*>(memory);  // zeros are empty slots
  } else if (x_used.load() != kFirst) {
    madvise(x_slots, bytes, MADV_DONTNEED);  // zeros again
  }
  x_used.store(kFirst);
  x_epoch.store(0);
  x_unloads_begun.store(0);
}

void KernelNames::look(const char* name) noexcept {
  const uint32_t epoch = x_epoch.load(std::memory_order_acquire);
  for (size_t i = 0, at = slot_of(name); i < kProbes; ++i, at = (at + 1) % kSlots) {
    Slot& slot = x_slots[at];
    const char* there = slot.name.load(std::memory_order_acquire);
    if (!there && slot.name.compare_exchange_strong(there, name)) there = name;
    if (there != name) continue;
    // Two threads may both copy a text here; the one that comes later then hides an equal one.
    const uint32_t newest = slot.newest.load(std::memory_order_acquire);
    if (newest != 0 && slot.checked.load(std::memory_order_relaxed) == epoch) return;
    if (newest == 0 || std::strcmp(text_of(version(newest)), name) != 0) {
      const uint32_t made = copy(name, epoch, newest);
      if (made == 0) return;
      slot.newest.store(made, std::memory_order_release);
    }
    slot.checked.store(epoch, std::memory_order_release);
    return;
  }
}

// 0: there is no room left.
uint32_t KernelNames::copy(const char* name, uint32_t epoch, uint32_t older) noexcept {
  const size_t length = std::strlen(name) + 1;
  const size_t need = (sizeof(Version) + length + alignof(Version) - 1) & ~(alignof(Version) - 1);
  uint32_t at = x_used.load();
  do {
    if (need > kTextBytes - at) return 0;
  } while (!x_used.compare_exchange_weak(at, at + static_cast<uint32_t>(need)));
  auto* made = reinterpret_cast<Version*>(x_texts + at);
  made->older = older;
  made->epoch = epoch;
  std::memcpy(made + 1, name, length);
  return at;
}

void KernelNames::unloaded(uint32_t correlation) noexcept {
  x_unloads[x_unloads_begun.fetch_add(1) % kUnloads].store(correlation);
  x_epoch.fetch_add(1);
}

uint32_t KernelNames::epoch_of(uint32_t correlation) const noexcept {
  const uint32_t now = epoch();
  const uint32_t known = std::min<uint32_t>(now, kUnloads);
  // IDs wrap around: earlier is what lies less than half of them behind.
  for (uint32_t back = 0; back < known; ++back) {
    const uint32_t unload = x_unloads[(now - 1 - back) % kUnloads].load(std::memory_order_relaxed);
    if (static_cast<int32_t>(correlation - unload) >= 0) return now - back;
  }
  return now - known;
}

const KernelNames::Slot* KernelNames::slot(const char* name) const noexcept {
  if (!x_slots || !name) return nullptr;
  for (size_t i = 0, at = slot_of(name); i < kProbes; ++i, at = (at + 1) % kSlots) {
    const char* there = x_slots[at].name.load(std::memory_order_acquire);
    if (there == name) return &x_slots[at];
    if (!there) break;
  }
  return nullptr;
}

const char* KernelNames::find(const char* name, uint32_t epoch) const noexcept {
  const Slot* s = slot(name);
  const char* found = nullptr;
  for (uint32_t v = s ? s->newest.load(std::memory_order_acquire) : 0; v != 0; v = version(v).older) {
    found = text_of(version(v));
    if (version(v).epoch <= epoch) break;
  }
  return found;
}

const char* KernelNames::find_seen_in(const char* name, uint32_t epoch) const noexcept {
  const Slot* s = slot(name);
  // In this order: a text that is newer than the check is then seen as newer.
  const uint32_t checked = s ? s->checked.load(std::memory_order_acquire) : 0;
  const uint32_t newest = s ? s->newest.load(std::memory_order_acquire) : 0;
  if (newest == 0 || (version(newest).epoch <= epoch && checked < epoch)) return nullptr;
  return find(name, epoch);
}

}  // namespace cuptiprof
