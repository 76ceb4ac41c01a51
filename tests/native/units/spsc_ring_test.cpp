#include "base/spsc_ring.h"

#include <array>
#include <cstdint>
#include <thread>
#include <vector>

#include "doctest/doctest.h"

namespace cuptiprof {
namespace {

constexpr uint32_t kCapacity = 8;

struct Ring {
  std::array<uint64_t, kCapacity> storage{};
  SpscRing<uint64_t> ring;
  Ring() { ring.attach(storage.data(), kCapacity); }
  std::vector<uint64_t> taken() {
    std::vector<uint64_t> out;
    ring.drain([&](uint64_t value) { out.push_back(value); });
    return out;
  }
};

TEST_CASE("a ring holds as many as it has room for, in order") {
  Ring r;
  CHECK(r.ring.empty());
  for (uint64_t i = 0; i < kCapacity; ++i) CHECK(r.ring.push(i));
  CHECK_FALSE(r.ring.push(99));
  CHECK(r.taken() == std::vector<uint64_t>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(r.ring.empty());
  CHECK(r.ring.push(8));
  CHECK(r.ring.pushed() == kCapacity + 1);
  CHECK(r.ring.popped() == kCapacity);
}

TEST_CASE("a push that keeps room for others fails before the ring is full") {
  for (uint32_t reserve = 0; reserve < kCapacity; ++reserve) {
    CAPTURE(reserve);
    Ring r;
    uint32_t held = 0;
    while (r.ring.push(held, reserve)) ++held;
    CHECK(held == kCapacity - reserve);
    // What was kept is there for those that must not fail.
    for (uint32_t i = 0; i < reserve; ++i) CHECK(r.ring.push(held + i));
    CHECK_FALSE(r.ring.push(0));
  }
}

TEST_CASE("values come out once and in order, however often the ring wraps") {
  Ring r;
  uint64_t next = 0, wanted = 0;
  for (uint32_t round = 0; round < 1000; ++round) {
    const uint32_t n = round % (kCapacity + 1);
    for (uint32_t i = 0; i < n; ++i) CHECK(r.ring.push(next++));
    for (const uint64_t value : r.taken()) CHECK(value == wanted++);
    CHECK(wanted == next);
  }
}

TEST_CASE("what is pushed while the ring is drained waits for the next time") {
  Ring r;
  CHECK(r.ring.push(1));
  size_t visited = r.ring.drain([&](uint64_t value) {
    if (value < 4) CHECK(r.ring.push(value + 1));
  });
  CHECK(visited == 1);
  CHECK(r.taken() == std::vector<uint64_t>{2});
}

TEST_CASE("one thread writes and another reads: nothing is lost, doubled or torn") {
  struct Wide {
    uint64_t a, b, c, d;
  };
  constexpr uint64_t kCount = 200'000;
  std::vector<Wide> storage(64);
  SpscRing<Wide> ring;
  ring.attach(storage.data(), 64);
  std::thread producer([&] {
    for (uint64_t i = 0; i < kCount; ++i)
      while (!ring.push({i, ~i, i * 3, i ^ 0xff}, i % 3)) std::this_thread::yield();
  });
  uint64_t wanted = 0;
  bool whole = true;
  while (wanted < kCount) {
    ring.drain([&](const Wide& w) {
      whole = whole && w.a == wanted && w.b == ~wanted && w.c == wanted * 3 && w.d == (wanted ^ 0xff);
      ++wanted;
    });
    if (ring.empty()) std::this_thread::yield();
  }
  producer.join();
  CHECK(whole);
  CHECK(wanted == kCount);
  CHECK(ring.empty());
}

}  // namespace
}  // namespace cuptiprof
