#include "threads/open_regions.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "doctest/doctest.h"

namespace cuptiprof {
namespace {

uint32_t top_name(const OpenRegions& open) {
  return open.depth() == 0 ? 0 : open.entry(open.depth() - 1).name.load();
}

TEST_CASE("entries go by what brought them, not by their place") {
  OpenRegions open;
  open.push(1, 11, 11, 0);
  open.push(2, 12, 12, 7);
  open.push(3, 13, 13, 0);
  CHECK(open.depth() == 3);
  CHECK(open.holds(12));
  CHECK(open.pop(12) == 1);
  CHECK_FALSE(open.holds(12));
  CHECK(open.depth() == 2);
  CHECK(top_name(open) == 3);
  CHECK(open.pop(99) == OpenRegions::kMax);
  CHECK(open.pop(13) == 1);
  CHECK(open.pop(11) == 0);
  CHECK(open.depth() == 0);
}

TEST_CASE("a hand-over that brought several takes them out one by one") {
  OpenRegions open;
  open.push(1, 11, 11, 0);
  open.push(5, 105, 50, 0);
  open.push(6, 106, 50, 0);
  CHECK(open.pop(50) == 2);
  CHECK(open.pop(50) == 1);
  CHECK(open.pop(50) == OpenRegions::kMax);
  CHECK(top_name(open) == 1);
}

TEST_CASE("regions deeper than there is room for are counted, not kept") {
  OpenRegions open;
  for (uint32_t i = 0; i < OpenRegions::kMax + 3; ++i) open.push(i, 100 + i, 100 + i, 0);
  CHECK(open.depth() == OpenRegions::kMax);
  for (uint32_t i = 0; i < 3; ++i) CHECK(open.pop(100 + OpenRegions::kMax + i) == OpenRegions::kMax);
  CHECK(open.depth() == OpenRegions::kMax);
  CHECK(open.pop(100) == 0);
  CHECK(open.depth() == OpenRegions::kMax - 1);
}

TEST_CASE("what was left on another thread is marked there and taken out here") {
  OpenRegions open;
  open.push(1, 11, 11, 0);
  open.push(2, 12, 12, 0);
  CHECK(open.exit_id_of_left() == 0);
  std::thread([&open] { open.left_elsewhere(11); }).join();
  CHECK(open.exit_id_of_left() == 11);
  CHECK(open.depth() == 2);
  CHECK(open.pop(11) == 0);
  CHECK(open.exit_id_of_left() == 0);
  CHECK(open.depth() == 1);
}

TEST_CASE("what was open is forgotten everywhere at once") {
  OpenRegions open;
  open.push(1, 11, 11, 0);
  OpenRegions::forget_all();
  CHECK(open.depth() == 0);
  CHECK_FALSE(open.holds(11));
  CHECK(open.pop(11) == OpenRegions::kMax);
  open.push(2, 12, 12, 0);
  CHECK(open.depth() == 1);
  CHECK(top_name(open) == 2);
}

TEST_CASE("a reader beside the owner sees entries that were there, never others") {
  auto open = std::make_unique<OpenRegions>();
  std::atomic<bool> done{false};
  std::atomic<uint64_t> wrong{0};
  std::thread reader([&] {
    while (!done.load()) {
      const uint32_t n = open->depth();
      if (n > OpenRegions::kMax) wrong.fetch_add(1);
      for (uint32_t i = 0; i < n; ++i)
        if (open->entry(i).name.load() > 1000) wrong.fetch_add(1);
    }
  });
  for (int round = 0; round < 20'000; ++round) {
    const uint32_t deep = 1 + static_cast<uint32_t>(round) % 40;
    for (uint32_t i = 0; i < deep; ++i) open->push(i, 100 + i, 100 + i, 0);
    for (uint32_t i = deep; i-- > 0;) open->pop(100 + i);
  }
  done.store(true);
  reader.join();
  CHECK(wrong.load() == 0);
  CHECK(open->depth() == 0);
}

}  // namespace
}  // namespace cuptiprof
