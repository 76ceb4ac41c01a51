#include "threads/module_table.h"

#include <sys/mman.h>

#include "base/error.h"
#include "threads/frame_tree.h"

namespace cuptiprof {

void ModuleTable::map() {
  if (x_slots) return;
  void* mapped =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    throw Error(ErrorKind::kBudget, "cannot map 40 MiB of address space for PyTorch's modules",
                "raise ulimit -v, or leave \"modules\" out of sources=");
  x_slots = static_cast<Slot*>(mapped);  // zeros are empty everywhere
  x_records = reinterpret_cast<ModuleRecord*>(x_slots + kSlots);
}

void ModuleTable::forget() noexcept {
  madvise(x_slots, kBytes, MADV_DONTNEED);  // zeros again
  x_next.store(1);
  x_events.store(0);
  x_nameless.store(false);
}

uint32_t ModuleTable::number(const void* address, const void* type) noexcept {
  const auto key = reinterpret_cast<uint64_t>(address);
  for (uint32_t i = 0, at = slot_of(key); i < kProbes; ++i, at = (at + 1) % kSlots) {
    uint64_t seen = x_slots[at].address.load(std::memory_order_acquire);
    if (seen == 0 && x_slots[at].address.compare_exchange_strong(seen, key, std::memory_order_acq_rel))
      seen = key;
    if (seen != key) continue;
    uint32_t known = x_slots[at].number.load(std::memory_order_acquire);
    if (known != 0 && x_records[known].type.load(std::memory_order_acquire) == type) return known;
    uint32_t made = x_next.load(std::memory_order_relaxed);
    do {
      if (made >= kRecords) return 0;
    } while (!x_next.compare_exchange_weak(made, made + 1, std::memory_order_acq_rel));
    x_records[made].address.store(address, std::memory_order_relaxed);
    x_records[made].type.store(type, std::memory_order_release);
    // Two threads that see it first at once agree; a record is left unused.
    if (x_slots[at].number.compare_exchange_strong(known, made, std::memory_order_acq_rel)) return made;
    x_records[made].address.store(nullptr, std::memory_order_relaxed);
    return known;
  }
  return 0;
}

bool ModuleTable::use(uint32_t number) noexcept {
  std::atomic<uint32_t>& used = x_records[number].used;
  uint32_t never = 0;
  if (used.load(std::memory_order_relaxed) != 0) return false;
  if (!used.compare_exchange_strong(never, x_events.fetch_add(1) + 1) || is_named(number)) return false;
  x_nameless.store(true, std::memory_order_relaxed);
  return true;
}

void ModuleTable::dies(const void* address) noexcept {
  if (!x_slots) return;
  const auto key = reinterpret_cast<uint64_t>(address);
  for (uint32_t i = 0, at = slot_of(key); i < kProbes; ++i, at = (at + 1) % kSlots) {
    const uint64_t seen = x_slots[at].address.load(std::memory_order_acquire);
    if (seen == 0) return;
    if (seen != key) continue;
    const uint32_t number = x_slots[at].number.exchange(0, std::memory_order_acq_rel);
    if (number == 0) return;
    x_records[number].died.store(x_events.fetch_add(1) + 1, std::memory_order_release);
    return;
  }
}

void ModuleTable::set_name(uint32_t number, const ModuleName& name) noexcept {
  const uint32_t text = g_frame_tree.function(name.root_class, name.path, name.root, false);
  if (!is_named(number)) x_records[number].name.store(text, std::memory_order_release);
}

ModuleName ModuleTable::name(uint32_t number) const noexcept {
  const uint32_t text = x_records[number].name.load(std::memory_order_acquire);
  if (text == 0) return {};
  const FunctionPlace f = g_frame_tree.function_at(text);
  return {f.file, f.name, f.first_line};
}

}  // namespace cuptiprof
