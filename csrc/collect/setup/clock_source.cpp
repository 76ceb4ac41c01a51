#include "collect/setup/clock_source.h"

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/stamp_clock.h"
#include "cupti/detach.h"
#include "cupti/subscriber_calls.h"

namespace cuptiprof {
namespace {

// The library whose clock regions are stamped with.
std::atomic<const Api*> g_clock_api{nullptr};
std::atomic<CUpti_SubscriberHandle> g_clock_subscriber{nullptr};  // null: the library's own clock

int64_t library_clock() {
  uint64_t t = 0;
  const SubscriberCalls calls(*g_clock_api.load(std::memory_order_relaxed),
                              g_clock_subscriber.load(std::memory_order_relaxed));
  // A subscriber that went a moment ago has no clock.
  return calls.timestamp(&t) == CUPTI_SUCCESS ? static_cast<int64_t>(t) : monotonic_ns();
}

uint64_t CUPTIAPI run_clock() { return static_cast<uint64_t>(monotonic_ns()); }

bool tells_our_time(const SubscriberCalls& calls) {
  uint64_t t = 0;
  const auto before = static_cast<uint64_t>(monotonic_ns());
  if (calls.timestamp(&t) != CUPTI_SUCCESS) return false;
  return before <= t && t <= static_cast<uint64_t>(monotonic_ns());
}

}  // namespace

void use_run_clock(const std::shared_ptr<const Api>& api, const SubscriberCalls& calls) {
  static std::mutex mutex;  // guards the rest; held over no other CUPTI user's call
  // Libraries that took our clock and whose cuptiGetTimestamp does not show it, with how often they had been
  // finalized: what others register later cannot be seen there.
  static std::map<std::string, uint32_t> unseen;
  static std::vector<std::shared_ptr<const Api>> kept;  // a clock source must outlive every reader
  const std::lock_guard lock(mutex);
  if (tells_our_time(calls)) return set_clock_source(nullptr);
  if (calls.is_shared()) {
    if (calls.set_clock(&run_clock) == CUPTI_SUCCESS) return set_clock_source(nullptr);
    kept.push_back(api);
    g_clock_api.store(api.get());
    g_clock_subscriber.store(calls.handle());
    return set_clock_source(&library_clock);
  }
  const auto before = unseen.find(api->path);
  if (before != unseen.end() && before->second == times_finalized(*api)) return set_clock_source(nullptr);
  if (calls.set_clock(&run_clock) == CUPTI_SUCCESS) {
    if (!tells_our_time(calls)) unseen[api->path] = times_finalized(*api);
    return set_clock_source(nullptr);
  }
  kept.push_back(api);
  g_clock_api.store(api.get());
  g_clock_subscriber.store(nullptr);
  set_clock_source(&library_clock);
}

void leave_clock(const SubscriberCalls& calls) noexcept {
  if (calls.is_shared()) set_clock_source(nullptr);
}

}  // namespace cuptiprof
