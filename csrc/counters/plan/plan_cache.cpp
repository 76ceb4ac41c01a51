#include "counters/plan/plan_cache.h"

#include "counters/plan/plan_file.h"

namespace cuptiprof {
namespace {

constexpr size_t kMemoryBytes = 32u << 20;

size_t bytes_of(const std::string& key, const std::vector<PassGroup>& groups) {
  size_t bytes = key.size();
  for (const PassGroup& g : groups) {
    bytes += sizeof g + g.image.size();
    for (const std::string& m : g.metrics) bytes += sizeof m + m.size();
  }
  return bytes;
}

}  // namespace

std::optional<std::vector<PassGroup>> PlanCache::find(const std::string& folder, const std::string& key) {
  {
    std::lock_guard lock(x_mutex);
    if (const auto it = x_memory.find(folder + "\n" + key); it != x_memory.end()) return it->second;
  }
  if (folder.empty()) return std::nullopt;
  const auto bytes = read_own_file(folder + "/" + plan_file_name(key));
  auto groups = bytes ? decode_plan(*bytes, key) : std::nullopt;
  if (groups) remember(folder + "\n" + key, *groups);
  return groups;
}

void PlanCache::put(const std::string& folder, uint64_t disk_bytes, const std::string& key,
                    const std::vector<PassGroup>& groups) {
  remember(folder + "\n" + key, groups);
  if (folder.empty()) return;
  const std::string bytes = encode_plan(key, groups);
  if (bytes.size() > disk_bytes) return;
  if (write_atomically(folder, plan_file_name(key), bytes)) trim_folder(folder, disk_bytes);
}

void PlanCache::remember(const std::string& key, const std::vector<PassGroup>& groups) {
  std::lock_guard lock(x_mutex);
  const size_t bytes = bytes_of(key, groups);
  // Starting over is enough: a process uses a handful of sets.
  if (x_memory_bytes + bytes > kMemoryBytes) {
    x_memory.clear();
    x_memory_bytes = 0;
  }
  if (x_memory.insert_or_assign(key, groups).second) x_memory_bytes += bytes;
}

}  // namespace cuptiprof
