#include "collect/torch/operator_trial.h"

#include <pthread.h>

#include <atomic>

namespace cuptiprof::torch {
namespace {

constexpr size_t kTrialCalls = 64, kTrialName = 128;

// One trial at a time: who attaches sees to that.
struct Trial {
  std::atomic<bool> runs{false};
  pthread_t thread{};
  const char* (*name)(const RecordFunction*) = nullptr;
  uint64_t handle = 0;
  size_t calls = 0;
  struct {
    char name[kTrialName];
    char bytes[kTrialBytes];
  } call[kTrialCalls];
};
Trial g_trial;

NoContext trial_start(const RecordFunction& called) {
  Trial& t = g_trial;
  if (!t.runs.load(std::memory_order_acquire) || !pthread_equal(t.thread, pthread_self())) return {};
  if (t.calls == kTrialCalls) return {};
  auto& call = t.call[t.calls++];
  std::strncpy(call.name, t.name(&called), kTrialName - 1);
  std::memcpy(call.bytes, &called, kTrialBytes);
  return {};
}
void trial_end(const RecordFunction&, void*) {}

}  // namespace

void begin_trial(const Library& library) {
  Trial& t = g_trial;
  t.thread = pthread_self();
  t.name = library.name;
  t.calls = 0;
  t.runs.store(true, std::memory_order_release);
  Callback callback{&trial_start, &trial_end};
  callback.scopes.fill(true);
  t.handle = library.add_global_callback(callback);
}

std::vector<TrialCall> end_trial(const Library& library) {
  Trial& t = g_trial;
  library.remove_callback(t.handle);
  t.runs.store(false);
  std::vector<TrialCall> out;
  for (size_t i = 0; i < t.calls; ++i)
    out.push_back({t.call[i].name, std::string(t.call[i].bytes, kTrialBytes)});
  return out;
}

}  // namespace cuptiprof::torch
