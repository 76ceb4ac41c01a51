#include "collect/clock_source.h"

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cupti/api.h"
#include "cupti/detach.h"

namespace cuptiprof {
namespace {

// The library whose clock regions are stamped with.
std::atomic<const Api*> g_clock_api{nullptr};

int64_t library_clock() {
  uint64_t t = 0;
  g_clock_api.load(std::memory_order_relaxed)->cuptiGetTimestamp(&t);
  return static_cast<int64_t>(t);
}

uint64_t CUPTIAPI run_clock() { return static_cast<uint64_t>(monotonic_ns()); }

bool tells_our_time(const Api& api) {
  uint64_t t = 0;
  const auto before = static_cast<uint64_t>(monotonic_ns());
  if (api.cuptiGetTimestamp(&t) != CUPTI_SUCCESS) return false;
  return before <= t && t <= static_cast<uint64_t>(monotonic_ns());
}

}  // namespace

void use_run_clock(const std::shared_ptr<const Api>& api) {
  static std::mutex mutex;  // guards the rest; held over no other CUPTI user's call
  // Libraries that took our clock and whose cuptiGetTimestamp does not show it, with how often they had been
  // finalized: what others register later cannot be seen there.
  static std::map<std::string, uint32_t> unseen;
  static std::vector<std::shared_ptr<const Api>> kept;  // a clock source must outlive every reader
  const std::lock_guard lock(mutex);
  if (tells_our_time(*api)) return g_clock_source.store(nullptr);
  const auto before = unseen.find(api->path);
  if (before != unseen.end() && before->second == times_finalized(*api)) return g_clock_source.store(nullptr);
  if (api->cuptiActivityRegisterTimestampCallback &&
      api->cuptiActivityRegisterTimestampCallback(&run_clock) == CUPTI_SUCCESS) {
    if (!tells_our_time(*api)) unseen[api->path] = times_finalized(*api);
    return g_clock_source.store(nullptr);
  }
  kept.push_back(api);
  g_clock_api.store(api.get());
  g_clock_source.store(&library_clock);
}

}  // namespace cuptiprof
