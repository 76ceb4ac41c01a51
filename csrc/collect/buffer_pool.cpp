#include "collect/buffer_pool.h"

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace cuptiprof {
namespace {

// One for each thread that can be between a request and its completion while the pool is dry; address space
// only until used.
constexpr size_t kDiscardBytes = 64 * 1024;
constexpr size_t kDiscardCount = 1024;

uint8_t* map_memory(size_t bytes, bool touch) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (touch ? MAP_POPULATE : MAP_NORESERVE);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<uint8_t*>(memory);
}

}  // namespace

BufferPool::BufferPool() { sem_init(&x_wake, 0, 0); }

BufferPool::~BufferPool() = default;  // lives as long as the process: CUPTI may hold buffers to the very end

void BufferPool::configure(size_t bytes, size_t count) {
  const std::lock_guard lock(x_mutex);
  if (!x_discard) {
    x_discard = map_memory(kDiscardBytes * kDiscardCount, false);
    if (!x_discard)
      throw Error(ErrorKind::kBudget, "cannot map 64 MiB of address space for activity buffers",
                  "raise ulimit -v");
    for (size_t i = kDiscardCount; i-- > 0;) x_free_discard.push_back(x_discard + i * kDiscardBytes);
  }
  if (x_buffer_bytes == bytes && x_buffers.size() == count) return;
  if (x_held == 0 && x_buffer_bytes != 0) {
    for (uint8_t* b : x_buffers) munmap(b, x_buffer_bytes);
    x_buffers.clear();
    x_free.clear();
  }
  if (x_held != 0) {
    // CUPTI still holds some of the old ones: they stay, and only more of the same size can join them.
    bytes = x_buffer_bytes;
  }
  x_buffers.reserve(count);
  x_free.reserve(std::max(count, x_buffers.size()));
  x_completed.reserve(std::max(count, x_buffers.size()));
  x_buffer_bytes = bytes;
  while (x_buffers.size() < count) {
    uint8_t* b = map_memory(bytes, true);
    if (!b)
      throw Error(ErrorKind::kBudget, "cannot allocate " + std::to_string(count) + " activity buffers",
                  "give a smaller buffer_count= or buffer_size=");
    x_buffers.push_back(b);
    x_free.push_back(b);
  }
}

bool BufferPool::is_discard(const uint8_t* data) const noexcept {
  return data >= x_discard && data < x_discard + kDiscardBytes * kDiscardCount;
}

uint8_t* BufferPool::acquire(size_t* bytes) noexcept {
  const std::lock_guard lock(x_mutex);
  if (!x_free.empty()) {
    uint8_t* b = x_free.back();
    x_free.pop_back();
    ++x_held;
    *bytes = x_buffer_bytes;
    return b;
  }
  *bytes = kDiscardBytes;
  if (x_free_discard.empty()) {
    // More than kDiscardCount threads at once: CUPTI is told that there is no room; it counts what it drops.
    *bytes = 0;
    return nullptr;
  }
  uint8_t* b = x_free_discard.back();
  x_free_discard.pop_back();
  return b;
}

bool BufferPool::complete(uint8_t* data, size_t valid_bytes) noexcept {
  if (is_discard(data)) return false;
  {
    const std::lock_guard lock(x_mutex);
    if (x_held > 0) --x_held;
    x_completed.push_back({data, valid_bytes});  // capacity reserved for every buffer there is
    x_completed_ever.fetch_add(1);
  }
  wake();
  return true;
}

void BufferPool::release(uint8_t* data) noexcept {
  const std::lock_guard lock(x_mutex);
  if (is_discard(data)) return x_free_discard.push_back(data);
  x_free.push_back(data);
  x_released_ever.fetch_add(1);
}

bool BufferPool::wait_for_decoder(std::chrono::milliseconds patience) noexcept {
  const uint64_t wanted = x_completed_ever.load();
  const auto deadline = std::chrono::steady_clock::now() + patience;
  const timespec pause{0, 50'000};
  while (x_released_ever.load() < wanted) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    nanosleep(&pause, nullptr);
  }
  return true;
}

void BufferPool::take_completed(std::vector<CompletedBuffer>& out) {
  out.clear();
  const std::lock_guard lock(x_mutex);
  out.insert(out.end(), x_completed.begin(), x_completed.end());
  x_completed.clear();
}

void BufferPool::wait(int milliseconds) noexcept {
  timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += milliseconds % 1000 * 1'000'000L;
  until.tv_sec += milliseconds / 1000 + until.tv_nsec / 1'000'000'000L;
  until.tv_nsec %= 1'000'000'000L;
  while (sem_timedwait(&x_wake, &until) != 0 && errno == EINTR) {
  }
  while (sem_trywait(&x_wake) == 0) {  // one look serves all the wake-ups that came meanwhile
  }
}

size_t BufferPool::held_by_cupti() noexcept {
  const std::lock_guard lock(x_mutex);
  return x_held;
}

}  // namespace cuptiprof
