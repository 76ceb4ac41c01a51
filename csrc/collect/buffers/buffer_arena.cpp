#include "collect/buffers/buffer_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace cuptiprof {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kPage = 4096;

}  // namespace

BufferArena::BufferArena(size_t bytes, size_t count, bool touch)
    : x_bytes(bytes), x_stride((bytes + kLine - 1) / kLine * kLine), x_slots(count) {
  x_free.reserve(count);
  for (size_t i = count; i-- > 0;) x_free.push_back(static_cast<uint32_t>(i));
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (touch ? MAP_POPULATE : MAP_NORESERVE);
  void* memory = mmap(nullptr, x_stride * count, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  x_base = static_cast<uint8_t*>(memory);
  x_mapped = x_stride * count;
}

BufferArena::~BufferArena() { munmap(x_base, x_mapped); }

uint8_t* BufferArena::lend(uint64_t request) noexcept {
  if (x_free.empty()) return nullptr;
  const uint32_t i = x_free.back();
  x_free.pop_back();
  x_slots[i] = {request, true};
  return x_base + i * x_stride;
}

bool BufferArena::take_back(const uint8_t* data, uint64_t* request) noexcept {
  if (!owns(data)) return false;
  const size_t offset = static_cast<size_t>(data - x_base);
  Slot& slot = x_slots[offset / x_stride];
  if (offset % x_stride != 0 || !slot.lent) return false;
  slot.lent = false;
  *request = slot.request;
  return true;
}

void BufferArena::free(uint8_t* data) noexcept {
  x_free.push_back(static_cast<uint32_t>(static_cast<size_t>(data - x_base) / x_stride));
}

size_t BufferArena::lent_between(uint64_t from, uint64_t to) const noexcept {
  return static_cast<size_t>(std::count_if(x_slots.begin(), x_slots.end(), [from, to](const Slot& s) {
    return s.lent && s.request >= from && s.request < to;
  }));
}

void BufferArena::forget_free_memory() noexcept {
  for (const uint32_t i : x_free) {
    const size_t from = (i * x_stride + kPage - 1) / kPage * kPage;
    const size_t to = (i + 1) * x_stride / kPage * kPage;
    if (to > from) madvise(x_base + from, to - from, MADV_DONTNEED);
  }
}

}  // namespace cuptiprof
