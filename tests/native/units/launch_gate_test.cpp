#include "launch/launch_gate.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "doctest/doctest.h"

namespace cuptiprof {
namespace {

constexpr uint32_t kNone = VerdictCache::kNone;

TEST_CASE("a verdict is found again, in its epoch only") {
  auto cache = std::make_unique<VerdictCache>();
  CHECK(cache->find(0x7f0010, 1) == kNone);
  cache->put(0x7f0010, 1, 5);
  CHECK(cache->find(0x7f0010, 1) == 5);
  CHECK(cache->find(0x7f0011, 1) == kNone);
  CHECK(cache->find(0x7f0010, 2) == kNone);
  cache->put(0x7f0010, 2, 6);
  CHECK(cache->find(0x7f0010, 2) == 6);
  CHECK(cache->find(0x7f0010, 1) == kNone);
}

TEST_CASE("however many keys there are, a verdict is the right one or none") {
  auto cache = std::make_unique<VerdictCache>();
  std::mt19937_64 random(7);
  for (uint32_t epoch = 1; epoch <= 3; ++epoch) {
    std::vector<uint64_t> keys;  // other ones in each epoch
    for (int i = 0; i < 100'000; ++i) keys.push_back((random() & 0xffff'ffff'ffff) | 2);
    for (const uint64_t key : keys) cache->put(key, epoch, static_cast<uint32_t>(key ^ epoch));
    size_t found = 0, wrong = 0;
    for (const uint64_t key : keys) {
      const uint32_t value = cache->find(key, epoch);
      found += value != kNone;
      wrong += value != kNone && value != static_cast<uint32_t>(key ^ epoch);
    }
    CHECK(wrong == 0);
    CHECK(found > 10'000);  // those of the epoch before gave way
  }
}

TEST_CASE("a few thousand names of a session are all remembered") {
  auto cache = std::make_unique<VerdictCache>();
  for (uint64_t i = 0; i < 4000; ++i) cache->put(0x7f00'0000'0000 + 48 * i, 9, static_cast<uint32_t>(i));
  size_t found = 0;
  for (uint64_t i = 0; i < 4000; ++i) found += cache->find(0x7f00'0000'0000 + 48 * i, 9) == i;
  CHECK(found == 4000);
}

// A key that is given the same slot as `key`.
uint64_t rival_of(uint64_t key) {
  auto cache = std::make_unique<VerdictCache>();
  for (uint64_t other = key + 64;; other += 64) {
    cache->put(key, 1, 0);
    cache->put(other, 2, 0);
    if (cache->find(key, 1) == kNone) return other;
    cache = std::make_unique<VerdictCache>();
  }
}

TEST_CASE("readers beside the writer see the right verdict or none, while a slot changes hands") {
  auto cache = std::make_unique<VerdictCache>();
  const uint64_t keys[] = {0x7f0000001000, rival_of(0x7f0000001000)};
  const auto value_of = [](uint64_t key, uint32_t epoch) { return static_cast<uint32_t>(key * 7 + epoch); };
  std::atomic<uint32_t> epoch{1};
  std::atomic<bool> done{false};
  std::atomic<uint64_t> wrong{0}, found{0};
  std::vector<std::thread> readers;
  for (const uint64_t key : keys)
    readers.emplace_back([&, key] {
      while (!done.load(std::memory_order_relaxed)) {
        const uint32_t now = epoch.load();
        const uint32_t value = cache->find(key, now);
        if (value == kNone) continue;
        found.fetch_add(1, std::memory_order_relaxed);
        if (value != value_of(key, now)) wrong.fetch_add(1);
      }
    });
  for (uint32_t e = 1; e <= 200'000 || found.load() < 10'000; ++e) {
    epoch.store(e);
    cache->put(keys[e % 2], e, value_of(keys[e % 2], e));
  }
  done.store(true);
  for (auto& t : readers) t.join();
  CHECK(wrong.load() == 0);
}

TEST_CASE("a gate refuses what was refused, until that is forgotten") {
  auto gate = std::make_unique<LaunchGate>();
  CHECK_FALSE(gate->is_open());
  const uint32_t epoch = gate->open(true, false);
  CHECK(gate->is_open());
  CHECK(gate->by_path());
  CHECK(gate->epoch() == epoch);
  const char refused[] = "refused";
  const char wanted[] = "wanted";
  CHECK_FALSE(gate->refuses_name(refused));  // not judged yet
  gate->names.put(reinterpret_cast<uint64_t>(&refused[0]), epoch, LaunchGate::kRefused);
  gate->names.put(reinterpret_cast<uint64_t>(&wanted[0]), epoch, LaunchGate::kWanted);
  CHECK(gate->refuses_name(refused));
  CHECK_FALSE(gate->refuses_name(wanted));

  const uint32_t path[] = {3, 4};
  CHECK_FALSE(gate->refuses_path(path, {}, 0));
  gate->paths.put(LaunchGate::path_key(path, {}, 0), epoch, 17u << 1 | LaunchGate::kRefused);
  CHECK(gate->refuses_path(path, {}, 0));
  gate->paths.put(LaunchGate::path_key(path, {}, 0), epoch, 17u << 1 | LaunchGate::kWanted);
  CHECK_FALSE(gate->refuses_path(path, {}, 0));

  gate->forget();  // a module went: its names' addresses may be others' now
  CHECK_FALSE(gate->refuses_name(refused));
  gate->close();
  CHECK_FALSE(gate->is_open());
}

TEST_CASE("the key of a path tells order and length, and is never one of the cache's own marks") {
  const uint32_t a[] = {1, 2, 3}, b[] = {3, 2, 1}, c[] = {1, 2};
  CHECK(LaunchGate::path_key(a, {}, 0) != LaunchGate::path_key(b, {}, 0));
  CHECK(LaunchGate::path_key(a, {}, 0) != LaunchGate::path_key(c, {}, 0));
  CHECK(LaunchGate::path_key({}, {}, 0) > 1);
  for (uint32_t i = 0; i < 10'000; ++i) {
    const uint32_t path[] = {i, i * 3};
    if (LaunchGate::path_key(path, {}, 0) <= 1) FAIL("a mark");
  }
}

}  // namespace
}  // namespace cuptiprof
