// Plans in memory and on disk: the same set of metrics is planned once.
#pragma once
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace cuptiprof {

// Metrics that one configuration of the hardware collects together.
struct PassGroup {
  std::vector<std::string> metrics;  // sorted
  std::vector<uint8_t> image;        // configuration image
  uint32_t passes = 0;
};

// Safe from any thread. Errors of the file system are no errors here: the plan is made again.
class PlanCache {
 public:
  static constexpr uint64_t kDefaultBytes = 64ull << 20;

  // `folder` empty: memory only. Plans of one folder are not those of another, in memory either. Files of one
  // folder take at most `disk_bytes` together, the oldest go first.
  std::optional<std::vector<PassGroup>> find(const std::string& folder, const std::string& key);
  void put(const std::string& folder, uint64_t disk_bytes, const std::string& key,
           const std::vector<PassGroup>& groups);

 private:
  void remember(const std::string& key, const std::vector<PassGroup>& groups);

  std::mutex x_mutex;  // guards the two below
  std::unordered_map<std::string, std::vector<PassGroup>> x_memory;
  size_t x_memory_bytes = 0;
};

}  // namespace cuptiprof
