#include "collect/regions/scope_labels.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "base/string_table.h"
#include "store/losses.h"

namespace cuptiprof {
namespace {

// A label is kept twice, here and as the Python string (or NVTX message) by which it is looked up.
size_t cost_of(std::string_view key) { return 2 * key.size() + 256; }

struct Labels {
  StringTable table;  // of keys
  size_t bytes = 0;
  size_t budget = 16u << 20;
};

std::mutex g_labels_mutex;  // guards labels()
Labels& labels() {
  static Labels* all = new Labels;  // never destroyed: threads may outlive static destructors
  return *all;
}

uint32_t first_label() { return g_first_label.load(std::memory_order_relaxed); }

// Source, length of the domain, domain, name: whatever characters those have, no two labels share a key.
constexpr size_t kHead = 1 + sizeof(uint32_t);

std::string key_of(ScopeSource source, std::string_view domain, std::string_view name) {
  const auto length = static_cast<uint32_t>(domain.size());
  std::string key(kHead, static_cast<char>(source));
  std::memcpy(key.data() + 1, &length, sizeof length);
  return key.append(domain).append(name);
}

ScopeLabel label_of(std::string_view key) {
  uint32_t length;
  std::memcpy(&length, key.data() + 1, sizeof length);
  return {static_cast<ScopeSource>(key[0]), std::string(key.substr(kHead, length)),
          std::string(key.substr(kHead + length))};
}

}  // namespace

uint32_t scope_label_id(ScopeSource source, std::string_view domain, std::string_view name) {
  const std::string key = key_of(source, domain, name);
  const std::lock_guard lock(g_labels_mutex);
  Labels& all = labels();
  const size_t room = all.budget - std::min(all.budget, all.bytes);
  const uint32_t known = all.table.size();
  uint32_t id = all.table.intern(key, cost_of(key) <= room ? StringTable::kNoLimit : 0);
  if (id == StringTable::kNone) {
    count(g_labels_lost);
    id = all.table.intern(key_of(source, {}, kOtherScopes));
  } else if (all.table.size() > known) {
    all.bytes += cost_of(key);
  }
  return first_label() + id;
}

ScopeLabel scope_label(uint32_t id) {
  const std::lock_guard lock(g_labels_mutex);
  const StringTable& table = labels().table;
  // The table begins with the empty string, which is no key.
  if (id <= first_label() || id - first_label() >= table.size())
    return {ScopeSource::kRegion, {}, "(unknown)"};
  return label_of(table.at(id - first_label()));
}

std::vector<ScopeLabel> scope_labels(const std::vector<uint32_t>& ids) {
  std::vector<ScopeLabel> out;
  for (const uint32_t id : ids) out.push_back(scope_label(id));
  return out;
}

void set_label_budget(size_t bytes) {
  const std::lock_guard lock(g_labels_mutex);
  labels().budget = bytes;
}

void forget_labels() {
  const std::lock_guard lock(g_labels_mutex);
  g_first_label.store(first_label() + labels().table.size(), std::memory_order_relaxed);
  labels().table = StringTable();
  labels().bytes = 0;
}

}  // namespace cuptiprof
