// CUPTI's settings are the process's, not a session's: what a session needs otherwise is read, set, and put
// back when it ends. Other clients rely on theirs (Kineto on pthread IDs of threads) or leave their own
// behind (Kineto buffers that all threads share).
#pragma once
#include <cupti_activity.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace cuptiprof {

class SubscriberCalls;

struct CuptiSettings {
  bool latency_timestamps = false;
  size_t device_buffer_bytes = 0;  // of CUPTI's buffers in GPU memory; 0: as they are
  size_t device_buffers = 0;       // how many of them a context may have; 0: as it is

  bool operator==(const CuptiSettings&) const = default;
};

class SettingsGuard {
 public:
  // After subscribing, before buffer callbacks are registered and kinds enabled. Throws Error when CUPTI
  // refuses what the user asked for; what we want for ourselves may be refused.
  void apply(const SubscriberCalls& calls, const CuptiSettings& wanted);
  // With every kind disabled and everything flushed.
  void restore(const SubscriberCalls& calls) noexcept;

 private:
  struct Attribute {
    CUpti_ActivityAttribute which;
    size_t bytes;
    uint64_t before;
  };
  CUptiResult set(const SubscriberCalls& calls, CUpti_ActivityAttribute which, size_t bytes, uint64_t value);

  std::vector<Attribute> x_attributes;
  std::optional<CUpti_ActivityThreadIdType> x_thread_ids;
  bool x_latency = false;
};

}  // namespace cuptiprof
