#include "collect/regions/regions.h"

#include <algorithm>
#include <mutex>

#include "base/string_table.h"

namespace cuptiprof {
namespace {

// A name is kept twice, here and as the Python string by which it is looked up.
size_t cost_of(std::string_view name) { return 2 * name.size() + 256; }

struct Names {
  StringTable table;
  size_t bytes = 0;
  size_t budget = 16u << 20;
};

std::mutex g_names_mutex;  // guards names()
Names& names() {
  static Names* all = new Names;  // never destroyed: threads may outlive static destructors
  return *all;
}

uint32_t first() { return g_first_region_name.load(std::memory_order_relaxed); }

}  // namespace

bool push_after_all(ThreadSlot& slot, const Event& e) noexcept {
  const uint32_t elsewhere = slot.left_elsewhere.exchange(0, std::memory_order_relaxed);
  slot.open_regions -= std::min(elsewhere, slot.open_regions);
  if (elsewhere && slot.ring.push(e, slot.open_regions + 1)) return true;
  count(g_region_overflow);
  return false;
}

uint32_t region_name_id(std::string_view name) {
  const std::lock_guard lock(g_names_mutex);
  Names& all = names();
  const size_t room = all.budget - std::min(all.budget, all.bytes);
  const uint32_t known = all.table.size();
  uint32_t id = all.table.intern(name, cost_of(name) <= room ? StringTable::kNoLimit : 0);
  if (id == StringTable::kNone) {
    count(g_region_names_lost);
    id = all.table.intern(kOtherRegions);
  } else if (all.table.size() > known) {
    all.bytes += cost_of(name);
  }
  return first() + id;
}

std::string region_name(uint32_t id) {
  const std::lock_guard lock(g_names_mutex);
  const StringTable& table = names().table;
  return id >= first() && id - first() < table.size() ? std::string(table.at(id - first())) : "(unknown)";
}

void set_region_name_budget(size_t bytes) {
  const std::lock_guard lock(g_names_mutex);
  names().budget = bytes;
}

void forget_region_names() {
  const std::lock_guard lock(g_names_mutex);
  g_first_region_name.store(first() + names().table.size(), std::memory_order_relaxed);
  names().table = StringTable();
  names().bytes = 0;
}

}  // namespace cuptiprof
