#include "collect/torch/operator_trial.h"

#include <pthread.h>

#include <atomic>

#include "collect/torch/input_shapes.h"

namespace cuptiprof::torch {
namespace {

constexpr size_t kTrialCalls = 64, kTrialName = 128, kTrialInputs = 8;

// One trial at a time: who attaches sees to that.
struct Trial {
  std::atomic<bool> runs{false};
  pthread_t thread{};
  const char* (*name)(const RecordFunction*) = nullptr;
  uint64_t handle = 0;
  size_t calls = 0;
  uint32_t inputs = 0;
  struct {
    char name[kTrialName];
    char bytes[kTrialBytes];
    uint32_t tags[kTrialInputs], tag_count;
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
  call.tag_count = t.inputs ? input_tags(called, t.inputs, call.tags, kTrialInputs) : 0;
  return {};
}
void trial_end(const RecordFunction&, void*) {}

}  // namespace

void begin_trial(const Library& library, uint32_t inputs) {
  Trial& t = g_trial;
  t.thread = pthread_self();
  t.name = library.name;
  t.calls = 0;
  t.inputs = inputs;
  t.runs.store(true, std::memory_order_release);
  Callback callback{&trial_start, &trial_end};
  callback.scopes.fill(true);
  callback.needs_inputs = inputs != 0;
  t.handle = library.add_global_callback(callback);
}

std::vector<TrialCall> end_trial(const Library& library) {
  Trial& t = g_trial;
  library.remove_callback(t.handle);
  t.runs.store(false);
  std::vector<TrialCall> out;
  for (size_t i = 0; i < t.calls; ++i)
    out.push_back({t.call[i].name,
                   std::string(t.call[i].bytes, kTrialBytes),
                   {t.call[i].tags, t.call[i].tags + t.call[i].tag_count}});
  return out;
}

}  // namespace cuptiprof::torch
