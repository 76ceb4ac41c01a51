#include "nvtx/push_pop_stack.h"

#include <pthread.h>

#include <algorithm>
#include <climits>
#include <cstdlib>

#include "nvtx/nvtx_abi.h"

namespace cuptiprof::nvtx {
namespace {

constexpr uint32_t kMaxOpen = 1u << 16;  // pushed and never popped

struct Stack {
  uint32_t depth = 0;
  uint32_t room = 0;
  OpenRange* ranges = nullptr;
};

// initial-exec: one load, and never an allocation.
thread_local Stack t_stack [[gnu::tls_model("initial-exec")]];

void thread_ended(void* ranges) {
  std::free(ranges);
  t_stack = {};
}

pthread_key_t thread_key() {
  static const pthread_key_t key = [] {
    pthread_key_t made;
    return pthread_key_create(&made, &thread_ended) == 0 ? made : PTHREAD_KEYS_MAX;
  }();
  return key;
}

[[gnu::noinline]] bool make_room(Stack& stack) noexcept {
  if (stack.room >= kMaxOpen) return false;
  const uint32_t room = std::max(64u, stack.room * 2);
  auto* ranges = static_cast<OpenRange*>(std::realloc(stack.ranges, room * sizeof(OpenRange)));
  if (!ranges) return false;
  stack.ranges = ranges;
  stack.room = room;
  pthread_setspecific(thread_key(), ranges);
  return true;
}

}  // namespace

int push_open(uint64_t id, uint64_t task, uint32_t domain) noexcept {
  Stack& stack = t_stack;
  if (stack.depth == stack.room && !make_room(stack)) return kNoTracking;
  uint32_t level = 0;
  for (uint32_t i = stack.depth; i-- > 0;)
    if (stack.ranges[i].domain == domain) {
      level = stack.ranges[i].level + 1;
      break;
    }
  stack.ranges[stack.depth++] = {id, task, domain, level};
  return static_cast<int>(level);
}

bool pop_open(uint64_t task, uint32_t domain, OpenRange* taken) noexcept {
  Stack& stack = t_stack;
  uint32_t found = stack.depth;
  for (uint32_t i = stack.depth; i-- > 0;) {
    if (stack.ranges[i].domain != domain) continue;
    if (found == stack.depth) found = i;
    if (stack.ranges[i].task == task) {
      found = i;
      break;
    }
  }
  if (found == stack.depth) return false;
  *taken = stack.ranges[found];
  // Those inside of it, of other tasks, move out by a level.
  for (uint32_t i = found + 1; i < stack.depth; ++i) {
    stack.ranges[i - 1] = stack.ranges[i];
    if (stack.ranges[i - 1].domain == domain) --stack.ranges[i - 1].level;
  }
  --stack.depth;
  return true;
}

}  // namespace cuptiprof::nvtx
