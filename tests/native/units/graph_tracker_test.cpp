#include "collect/graphs/graph_tracker.h"

#include <cstdint>

#include "doctest/doctest.h"

namespace cuptiprof {
namespace {

constexpr uint64_t kExecutable = 0x5000;

struct Tracked {
  Losses losses;
  GraphTracker graphs{1u << 20, {.kernels = true}, losses};

  void captured(uint64_t node, uint32_t region) { graphs.created(node, {.node = region}); }
  void tell(EventKind kind, uint64_t object, uint64_t task = 0, uint32_t id = 0) {
    graphs.apply(0, {.stamp = 1, .task = task, .object = object, .id = id, .kind = kind});
  }
  void cloned(uint64_t node, uint64_t from) { tell(EventKind::kNodeCloned, node, from); }
  void instantiated(uint64_t node, uint64_t from) {
    tell(EventKind::kExecutableBegins, 0);
    cloned(node, from);
    tell(EventKind::kExecutableCreated, kExecutable);
  }
  void launched(uint32_t correlation) { tell(EventKind::kGraphLaunched, kExecutable, 0, correlation); }
  // 0: not known.
  uint32_t region_of(uint64_t node, uint32_t correlation, uint64_t source = 0) {
    const CaptureSite* site = graphs.received(node, source, correlation);
    return site ? site->node : 0;
  }
};

TEST_CASE("a copy is told of as created, too: before or after, it is a copy") {
  Tracked t;
  t.captured(1, 7);
  t.captured(2, 9);
  t.cloned(2, 1);
  t.cloned(3, 1);
  t.captured(3, 9);
  CHECK(t.region_of(2, 1) == 7);
  CHECK(t.region_of(3, 1) == 7);
}

TEST_CASE("of a launch before an update the node is what it was then, however late its record comes") {
  Tracked t;
  for (const uint32_t region : {7u, 8u, 9u}) t.captured(region, region);
  t.instantiated(20, 7);
  t.launched(100);
  t.cloned(20, 8);
  t.launched(110);
  t.launched(111);
  t.cloned(20, 9);
  t.launched(120);
  CHECK(t.region_of(20, 100) == 7);
  CHECK(t.region_of(20, 110) == 8);
  CHECK(t.region_of(20, 111) == 8);
  CHECK(t.region_of(20, 120) == 9);
  CHECK(t.graphs.counts().work == 4);
}

TEST_CASE("more updates than are kept: what is not known any more is not guessed") {
  Tracked t;
  t.captured(7, 7);
  t.captured(8, 8);
  t.instantiated(20, 7);
  constexpr uint32_t kUpdates = 200'000;
  for (uint32_t i = 1; i <= kUpdates; ++i) {
    t.launched(i);
    t.cloned(20, i % 2 ? 8 : 7);
  }
  for (const uint32_t correlation : {1u, 2u, kUpdates / 2, kUpdates - 1, kUpdates}) {
    const uint32_t region = t.region_of(20, correlation);
    CHECK((region == 0 || region == (correlation % 2 ? 7 : 8)));
  }
  CHECK(t.region_of(20, kUpdates) == 8);
}

TEST_CASE("what a record says of its node's origin goes before what was told") {
  Tracked t;
  t.captured(7, 7);
  t.captured(8, 8);
  t.instantiated(20, 7);
  t.launched(100);
  CHECK(t.region_of(20, 100, 7) == 7);
  CHECK(t.region_of(20, 100, 8) == 8);
  CHECK(t.region_of(20, 100, 99) == 0);  // older than the session
  CHECK(t.region_of(21, 100, 8) == 8);   // the executable graph is, its origin is not
}

TEST_CASE("an executable graph of which it is not known what it does is not counted") {
  Tracked t;
  constexpr uint32_t kConditional = 13;
  t.captured(7, 7);
  t.tell(EventKind::kExecutableBegins, 0);
  t.cloned(20, 7);
  t.tell(EventKind::kNodeCloned, 21, 8, kConditional);
  t.tell(EventKind::kExecutableCreated, kExecutable);
  t.launched(100);
  CHECK(t.region_of(20, 100) == 7);
  const GraphTracker::Counts counts = t.graphs.counts();
  CHECK(counts.launches == 1);
  CHECK(counts.unknown_launches == 1);
  CHECK(counts.work == 0);
  CHECK(counts.received == 0);
}

TEST_CASE("what is gone gives its room to others when its records have come") {
  Tracked t;
  constexpr uint64_t kMany = 100'000;
  uint64_t node = 1;
  const auto capture_until_full = [&] {
    const uint64_t before = node;
    while (t.losses.captures_lost.load() == 0 && node < kMany) t.captured(node++, 7);
    return node - before;
  };
  const uint64_t room = capture_until_full();
  CHECK(room > 10'000);
  for (uint64_t gone = 1; gone < room / 2; ++gone) t.tell(EventKind::kNodeDestroyed, gone);
  CHECK(t.region_of(1, 1) == 7);
  t.losses.captures_lost.store(0);
  for (int period = 0; period < 3; ++period) t.graphs.next_period();
  CHECK(capture_until_full() > room / 3);
  CHECK(t.region_of(1, 1) == 0);
  CHECK(t.region_of(room - 1, 1) == 7);
}

}  // namespace
}  // namespace cuptiprof
