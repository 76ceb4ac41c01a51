#include "collect/buffers/buffer_pool.h"

#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>

#include "base/error.h"
#include "collect/buffers/decoder_bell.h"

namespace cuptiprof {
namespace {

// One for each thread that can be between a request and its completion while the pool is dry; address space
// only until used.
constexpr size_t kDiscardBytes = 64 * 1024;
constexpr size_t kDiscardCount = 1024;

std::unique_ptr<BufferArena> make_arena(size_t bytes, size_t count, bool touch, const char* what,
                                        const char* hint) {
  try {
    return std::make_unique<BufferArena>(bytes, count, touch);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::kBudget, what, hint);
  }
}

}  // namespace

void BufferPool::configure(size_t bytes, size_t count) {
  std::unique_ptr<BufferArena> old, discard, fresh;
  std::vector<std::unique_ptr<BufferArena>> unused;
  if (!x_discard)
    discard = make_arena(kDiscardBytes, kDiscardCount, false,
                         "cannot map 64 MiB of address space for activity buffers", "raise ulimit -v");
  {
    const std::lock_guard lock(x_mutex);
    if (discard) x_discard = std::move(discard);
    x_session_began = x_requests.load();
    std::erase_if(x_retired, [&](auto& arena) {
      if (arena->free_count() != arena->count()) return false;
      unused.push_back(std::move(arena));
      return true;
    });
    if (x_buffers && x_buffers->buffer_bytes() == bytes && x_buffers->free_count() == count &&
        x_buffers->count() == count) {
      x_low.store(false);
      return;
    }
    old = std::move(x_buffers);
    if (old && old->free_count() != old->count()) {
      old->forget_free_memory();  // the rest comes back when it comes back
      x_retired.push_back(std::move(old));
    }
  }
  old.reset();  // first, so that there is room for the new ones
  fresh = make_arena(bytes, count, true, "cannot allocate the activity buffers",
                     "give a smaller buffer_count= or buffer_size=");
  const std::lock_guard lock(x_mutex);
  x_buffers = std::move(fresh);
  size_t all = count;
  for (const auto& arena : x_retired) all += arena->count();
  x_completed.reserve(all);
  x_low.store(false);
}

uint8_t* BufferPool::acquire(size_t* bytes) noexcept {
  bool newly_low = false;
  uint8_t* buffer = nullptr;
  {
    const std::lock_guard lock(x_mutex);
    const uint64_t request = x_requests.fetch_add(1);
    if (x_buffers) {
      buffer = x_buffers->lend(request);
      *bytes = x_buffers->buffer_bytes();
      if (x_buffers->free_count() <= x_buffers->count() / 4) newly_low = !x_low.exchange(true);
    }
    if (!buffer) {
      // More than kDiscardCount threads at once: CUPTI is told that there is no room; it counts what it
      // drops.
      buffer = x_discard ? x_discard->lend(request) : nullptr;
      *bytes = buffer ? kDiscardBytes : 0;
    }
  }
  if (newly_low) g_decoder_bell.ring();
  return buffer;
}

Returned BufferPool::complete(uint8_t* data, size_t valid_bytes) noexcept {
  {
    const std::lock_guard lock(x_mutex);
    uint64_t request = 0;
    if (x_discard && x_discard->take_back(data, &request))
      return request < x_session_began ? Returned::kEarlierDiscard : Returned::kDiscard;
    bool ours = x_buffers && x_buffers->take_back(data, &request);
    for (auto at = x_retired.begin(); !ours && at != x_retired.end(); ++at)
      ours = (*at)->take_back(data, &request);
    if (!ours) return Returned::kForeign;
    x_completed.push_back({data, valid_bytes, request});
    x_completed_ever.fetch_add(1);
  }
  g_decoder_bell.ring();
  return Returned::kToDecoder;
}

void BufferPool::release(uint8_t* data, size_t valid_bytes) noexcept {
  if (valid_bytes == 0) {
    // Perhaps it was written to all the same: CUPTI left the process.
    const std::lock_guard lock(x_mutex);
    if (x_buffers && x_buffers->owns(data)) valid_bytes = x_buffers->buffer_bytes();
  }
  std::memset(data, 0, valid_bytes);
  const std::lock_guard lock(x_mutex);
  if (x_discard->owns(data)) return x_discard->free(data);
  if (x_buffers && x_buffers->owns(data)) {
    x_buffers->free(data);
    if (x_buffers->free_count() > x_buffers->count() / 2) x_low.store(false);
  } else {
    for (const auto& arena : x_retired)
      if (arena->owns(data)) arena->free(data);
  }
  x_released_ever.fetch_add(1);
}

bool BufferPool::wait_for_decoder(std::chrono::milliseconds patience) noexcept {
  const uint64_t wanted = x_completed_ever.load();
  const auto deadline = std::chrono::steady_clock::now() + patience;
  const timespec pause{0, 50'000};
  x_waiting.fetch_add(1);
  bool in_time = true;
  while (x_released_ever.load() < wanted && in_time) {
    nanosleep(&pause, nullptr);
    in_time = std::chrono::steady_clock::now() < deadline;
  }
  x_waiting.fetch_sub(1);
  return in_time;
}

size_t BufferPool::take_completed(CompletedBuffer* out, size_t max) noexcept {
  const std::lock_guard lock(x_mutex);
  const size_t n = std::min(max, x_completed.size());
  for (size_t i = 0; i < n; ++i) {
    const Completed& c = x_completed[i];
    out[i] = {c.data, c.valid_bytes, c.request < x_session_began};
  }
  x_completed.erase(x_completed.begin(), x_completed.begin() + static_cast<ptrdiff_t>(n));
  return n;
}

size_t BufferPool::buffers() noexcept {
  const std::lock_guard lock(x_mutex);
  return x_completed.capacity();
}

size_t BufferPool::held_since_before(uint64_t request) noexcept {
  const std::lock_guard lock(x_mutex);
  size_t held = 0;
  for (const auto* arena : {x_buffers.get(), x_discard.get()})
    if (arena) held += arena->lent_between(x_session_began, request);
  return held;
}

}  // namespace cuptiprof
