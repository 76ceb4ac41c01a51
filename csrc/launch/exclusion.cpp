#include "launch/exclusion.h"

#include <time.h>

#include "threads/thread_slots.h"

namespace cuptiprof {
namespace {

constexpr timespec kPause{0, 20'000};

}  // namespace

bool Exclusion::take(const void* context, std::chrono::milliseconds patience) noexcept {
  x_disturbed.store(false);
  x_context.store(context);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (uint32_t i = 0; i < thread_slot_count(); ++i)
    while (thread_slot(i).launching.load() == context) {
      if (std::chrono::steady_clock::now() >= deadline) {
        x_context.store(nullptr);
        return false;
      }
      nanosleep(&kPause, nullptr);
    }
  return true;
}

void Exclusion::enter(std::atomic<const void*>& place, const void* context,
                      std::chrono::milliseconds patience) noexcept {
  place.store(context);
  if (x_context.load() != context) return;
  // Out of the way while waiting: the measurement waits for us.
  place.store(nullptr);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (x_context.load() == context && !x_disturbed.load()) {
    if (std::chrono::steady_clock::now() >= deadline) {
      x_disturbed.store(true);  // it hangs: nobody waits for it any more
      break;
    }
    nanosleep(&kPause, nullptr);
    place.store(context);
    if (x_context.load() != context) return;
    place.store(nullptr);
  }
  place.store(context);
  // Another measurement may have begun between the last look and now.
  if (x_context.load() == context) x_disturbed.store(true);
}

}  // namespace cuptiprof
