#include "collect/regions.h"

#include <mutex>

#include "base/intern.h"

namespace cuptiprof {
namespace {

std::mutex g_names_mutex;  // guards g_names
StringTable& names() {
  static StringTable* table = new StringTable;  // never destroyed: threads may outlive static destructors
  return *table;
}

}  // namespace

uint32_t region_name_id(std::string_view name) {
  const std::lock_guard lock(g_names_mutex);
  StringTable& table = names();
  if (table.size() >= kMaxRegionNames) return table.intern("(other)");
  return table.intern(name);
}

std::string region_name(uint32_t id) {
  const std::lock_guard lock(g_names_mutex);
  return std::string(names().at(id));
}

}  // namespace cuptiprof
