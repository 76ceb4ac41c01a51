#include "collect/regions/scope_labels.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "base/string_table.h"
#include "collect/buffers/decoder_bell.h"
#include "store/losses.h"

namespace cuptiprof {
namespace {

// A label is kept twice, here and as the Python string (or NVTX message) by which it is looked up.
size_t cost_of(std::string_view key) { return 2 * key.size() + 256; }
// One of an older generation, by which nobody looks up.
size_t cost_of_older(std::string_view key) { return cost_of(key) / 2; }

// Of the budget, what one generation takes before the next should begin: there is room for two, for what is
// still open of older ones, and for what comes until the decoder looks.
constexpr size_t kGenerationShare = 4;

struct Labels {
  StringTable table;  // keys of this generation, whose IDs begin at g_first_label
  StringTable last;   // of the one before
  uint32_t first_of_last = 1;
  std::unordered_map<uint32_t, std::string> older;  // those that were in use when they would have gone
  size_t bytes = 0;                                 // of `table`
  size_t older_bytes = 0;                           // of the others
  bool refused = false;                             // there was no room for one
  size_t budget = 16u << 20;
};

constexpr uint32_t kLastLabel = ~uint32_t{0} - 64;  // "(other)" of each source has one beyond

bool wants_to_age(const Labels& all) { return all.refused || all.bytes > all.budget / kGenerationShare; }

std::mutex g_labels_mutex;  // guards labels()
Labels& labels() {
  static Labels* all = new Labels;  // never destroyed: threads may outlive static destructors
  return *all;
}

uint32_t first_label() { return g_first_label.load(std::memory_order_relaxed); }

// A table begins with the empty string, which is no key.
bool is_in(const StringTable& table, uint32_t first, uint32_t id) {
  return id > first && id - first < table.size();
}

// Empty: it is of this generation, or was forgotten.
std::string_view older_key(const Labels& all, uint32_t id) {
  if (is_in(all.last, all.first_of_last, id)) return all.last.at(id - all.first_of_last);
  const auto found = all.older.find(id);
  return found != all.older.end() ? std::string_view(found->second) : std::string_view();
}

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
  const size_t used = all.bytes + all.older_bytes;
  const size_t room = all.budget - std::min(all.budget, used);
  const uint32_t known = all.table.size();
  const bool wanted = wants_to_age(all);
  // After 2^32 labels there are no IDs left.
  const bool fits = cost_of(key) <= room && first_label() + known < kLastLabel;
  uint32_t id = all.table.intern(key, fits ? StringTable::kNoLimit : 0);
  if (id == StringTable::kNone) {
    count(g_labels_lost);
    id = all.table.intern(key_of(source, {}, kOtherScopes));
    all.refused = true;
  } else if (all.table.size() > known) {
    all.bytes += cost_of(key);
  }
  if (!wanted && wants_to_age(all)) g_decoder_bell.ring();  // new names may come faster than it looks
  return first_label() + id;
}

ScopeLabel scope_label(uint32_t id) {
  const std::lock_guard lock(g_labels_mutex);
  const Labels& all = labels();
  if (is_in(all.table, first_label(), id)) return label_of(all.table.at(id - first_label()));
  if (const std::string_view key = older_key(all, id); !key.empty()) return label_of(key);
  count(g_labels_lost);
  return {ScopeSource::kRegion, {}, std::string(kLostName)};
}

std::vector<ScopeLabel> scope_labels(const std::vector<uint32_t>& ids) {
  std::vector<ScopeLabel> out;
  for (const uint32_t id : ids) out.push_back(scope_label(id));
  return out;
}

bool wants_to_age_labels() {
  const std::lock_guard lock(g_labels_mutex);
  return wants_to_age(labels());
}

bool is_room_for_labels(const std::vector<uint32_t>& used) {
  const std::lock_guard lock(g_labels_mutex);
  const Labels& all = labels();
  size_t bytes = 0;
  for (const uint32_t id : used)
    if (const std::string_view key = older_key(all, id); !key.empty()) bytes += cost_of_older(key);
  return bytes <= all.budget / kGenerationShare;
}

void age_labels(const std::vector<uint32_t>& used) {
  const std::lock_guard lock(g_labels_mutex);
  Labels& all = labels();
  std::unordered_map<uint32_t, std::string> older;
  size_t bytes = 0;
  for (const uint32_t id : used) {
    const std::string_view key = older_key(all, id);
    if (!key.empty() && older.emplace(id, key).second) bytes += cost_of_older(key);
  }
  all.older = std::move(older);
  all.last = std::move(all.table);
  all.first_of_last = first_label();
  all.table = StringTable();
  all.older_bytes = bytes + all.bytes / 2;  // cost_of_older
  all.bytes = 0;
  all.refused = false;
  g_first_label.store(all.first_of_last + all.last.size(), std::memory_order_relaxed);
}

void set_label_budget(size_t bytes) {
  const std::lock_guard lock(g_labels_mutex);
  labels().budget = bytes;
}

void forget_labels() {
  const std::lock_guard lock(g_labels_mutex);
  Labels& all = labels();
  g_first_label.store(first_label() + all.table.size(), std::memory_order_relaxed);
  const size_t budget = all.budget;
  all = {};
  all.budget = budget;
}

}  // namespace cuptiprof
