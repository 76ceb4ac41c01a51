#include "collect/regions/region_tracker.h"

#include <pthread.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "collect/regions/hand_over.h"
#include "collect/regions/regions.h"
#include "collect/regions/scope_labels.h"
#include "doctest/doctest.h"
#include "table_cells.h"

namespace cuptiprof {
namespace {

uint64_t enter(const char* name, uint64_t task = 0, RegionMetadata* metadata = nullptr) {
  return enter_region(g_region_mode.load(), region_label_id(name), metadata, task);
}

void launch(uint32_t correlation, uint64_t task = 0) {
  REQUIRE(this_thread_slot()->ring.push({read_stamp(), task, {nullptr}, correlation, EventKind::kLaunch}));
}

template <typename Body>
void in_thread(Body body) {
  std::thread(body).join();
}

// A session's decoder, as far as regions go.
struct Tracked {
  Losses losses;
  CorrelationMap calls{1u << 20};
  RegionTracker tracker{(start(), calls), losses};
  Store store{Keep::kFirst, 16u << 20, losses};

  static void start() {
    reserve_thread_slots();
    set_region_mode(kRegionsOn, true);
  }
  ~Tracked() { set_region_mode(kRegionsOn, false); }

  void drain() { tracker.drain(store); }

  // Path of the region of this launch; "-": it was not seen.
  std::string path_of(uint32_t correlation) const {
    const CallSite* site = calls.find(correlation);
    return site ? tracker.path_text(site->node) : "-";
  }

  template <typename T>
  T cell(std::string_view column, size_t row) {
    return cell_of<T>(store.table(TableId::regions), column, row);
  }
  size_t rows() { return store.table(TableId::regions).rows(); }
  std::string path(size_t row) { return std::string(store.strings().at(cell<uint32_t>("path", row))); }
};

TEST_CASE("a launch belongs to the innermost open region of its thread") {
  Tracked t;
  launch(1);
  const uint64_t outer = enter("outer");
  launch(2);
  const uint64_t inner = enter("inner");
  launch(3);
  exit_region(inner, 0);
  launch(4);
  exit_region(outer, 0);
  launch(5);
  in_thread([] { launch(6); });
  t.drain();
  CHECK(t.path_of(1).empty());
  CHECK(t.path_of(2) == "outer");
  CHECK(t.path_of(3) == "outer/inner");
  CHECK(t.path_of(4) == "outer");
  CHECK(t.path_of(5).empty());
  CHECK(t.path_of(6).empty());
  CHECK(t.path_of(7) == "-");

  REQUIRE(t.rows() == 2);  // in the order they were left
  CHECK(t.path(0) == "outer/inner");
  CHECK(t.path(1) == "outer");
  CHECK(t.cell<uint32_t>("parent", 0) == t.cell<uint32_t>("instance", 1));
  CHECK(t.cell<uint16_t>("depth", 0) == 1);
  CHECK(t.cell<int64_t>("start", 1) <= t.cell<int64_t>("start", 0));
  CHECK(t.cell<int64_t>("end", 0) <= t.cell<int64_t>("end", 1));
  CHECK(t.cell<uint8_t>("is_open", 0) == 0);
  CHECK(std::isnan(t.cell<double>("flops", 0)));
}

TEST_CASE("what the user said of a region stands in its row") {
  Tracked t;
  const uint64_t id = enter("measured", 0, new RegionMetadata{1e9, 4096, "{\"k\":1}"});
  exit_region(id, 0);
  t.drain();
  REQUIRE(t.rows() == 1);
  CHECK(t.cell<double>("flops", 0) == 1e9);
  CHECK(t.cell<double>("bytes", 0) == 4096);
  CHECK(t.store.strings().at(t.cell<uint32_t>("metadata", 0)) == "{\"k\":1}");
}

TEST_CASE("tasks that interleave on one thread keep their own regions, inside those of its outermost code") {
  Tracked t;
  const uint64_t loop = enter("loop");
  const uint64_t a = enter("a", 100);
  const uint64_t b = enter("b", 200);
  launch(1, 100);
  launch(2, 200);
  launch(3, 300);
  exit_region(a, 100);
  launch(4, 100);
  launch(5, 200);
  exit_region(b, 200);
  exit_region(loop, 0);
  t.drain();
  CHECK(t.path_of(1) == "loop/a");
  CHECK(t.path_of(2) == "loop/b");
  CHECK(t.path_of(3) == "loop");
  CHECK(t.path_of(4) == "loop");
  CHECK(t.path_of(5) == "loop/b");
}

TEST_CASE("regions that are not left innermost first each close their own") {
  Tracked t;
  const uint64_t a = enter("a");
  const uint64_t b = enter("b");
  exit_region(a, 0);
  launch(1);
  exit_region(b, 0);
  launch(2);
  t.drain();
  CHECK(t.path_of(1) == "a/b");
  CHECK(t.path_of(2).empty());
  CHECK(t.rows() == 2);
}

TEST_CASE("a region may be left on another thread, or in another task") {
  Tracked t;
  const uint64_t a = enter("a");
  launch(1);
  in_thread([a] { exit_region(a, 0); });
  launch(2);
  const uint64_t b = enter("b", 7);
  exit_region(b, 8);
  launch(3, 7);
  t.drain();
  CHECK(t.path_of(1) == "a");
  CHECK(t.path_of(2).empty());
  CHECK(t.path_of(3).empty());
  CHECK(t.rows() == 2);
}

TEST_CASE("what is handed over works for that region as long as it is open, then for the one around it") {
  Tracked t;
  const uint64_t outer = enter("outer");
  const uint64_t inner = enter("inner");
  const RegionToken token = hand_over(0);
  CHECK(token.number != 0);
  std::thread worker;
  {
    uint64_t adopted = 0;
    in_thread([&] {
      adopted = adopt_region(token, 0);
      launch(1);
      const uint64_t own = enter("own");
      launch(2);
      exit_region(own, 0);
      exit_region(adopted, 0);
      launch(3);
    });
    exit_region(inner, 0);
    in_thread([&] {
      const uint64_t late = adopt_region(token, 0);
      launch(4);
      exit_region(late, 0);
    });
    exit_region(outer, 0);
    in_thread([&] {
      const uint64_t too_late = adopt_region(token, 0);
      launch(5);
      exit_region(too_late, 0);
    });
  }
  t.drain();
  CHECK(t.path_of(1) == "outer/inner");
  CHECK(t.path_of(2) == "outer/inner/own");
  CHECK(t.path_of(3).empty());
  CHECK(t.path_of(4) == "outer");
  CHECK(t.path_of(5).empty());
  CHECK(t.rows() == 3);  // what is adopted has no row of its own
}

TEST_CASE("where nothing is open there is nothing to hand over") {
  Tracked t;
  CHECK(hand_over(0).number == 0);
  CHECK(adopt_region(RegionToken{}, 0) == 0);
}

TEST_CASE("torch's autograd threads work for the one thread that is inside backward") {
  Tracked t;
  const uint64_t step = enter("step");
  const auto autograd = [](uint32_t correlation) {
    in_thread([correlation] {
      pthread_setname_np(pthread_self(), "pt_autograd_0");
      launch(correlation);
    });
  };
  autograd(1);
  backward_begins(0, false);
  autograd(2);
  in_thread([] { launch(3); });  // any other thread works for nobody
  in_thread([&] {
    const uint64_t other = enter("other");
    backward_begins(0, false);
    autograd(4);  // of two callers nobody can say which
    backward_ends();
    exit_region(other, 0);
  });
  autograd(5);
  backward_ends();
  autograd(6);
  exit_region(step, 0);
  t.drain();
  CHECK(t.path_of(1).empty());
  CHECK(t.path_of(2) == "step");
  CHECK(t.path_of(3).empty());
  CHECK(t.path_of(4).empty());
  CHECK(t.path_of(5) == "step");
  CHECK(t.path_of(6).empty());
}

TEST_CASE("events are applied in the order of their times, whichever thread's ring is read first") {
  Tracked t;
  // Threads that live at once, taking turns: each enters, launches and leaves in rounds.
  constexpr uint32_t kThreads = 4, kRounds = 500;
  std::vector<std::thread> threads;
  for (uint32_t n = 0; n < kThreads; ++n)
    threads.emplace_back([n] {
      const std::string name = "t" + std::to_string(n);
      for (uint32_t i = 0; i < kRounds; ++i) {
        const uint64_t id = enter(name.c_str());
        launch(1 + n * kRounds * 2 + 2 * i);
        exit_region(id, 0);
        launch(2 + n * kRounds * 2 + 2 * i);
      }
    });
  for (int i = 0; i < 50; ++i) t.drain();
  for (auto& thread : threads) thread.join();
  t.drain();
  size_t right = 0;
  for (uint32_t n = 0; n < kThreads; ++n)
    for (uint32_t i = 0; i < kRounds; ++i) {
      right += t.path_of(1 + n * kRounds * 2 + 2 * i) == "t" + std::to_string(n);
      right += t.path_of(2 + n * kRounds * 2 + 2 * i).empty();
    }
  CHECK(right == 2 * kThreads * kRounds);
  CHECK(t.rows() == kThreads * kRounds);
}

TEST_CASE("what a thread leaves open when it ends has a row, and is not the next thread's") {
  Tracked t;
  in_thread([] {
    enter("abandoned");
    launch(1);
  });
  t.drain();  // events
  t.drain();  // the end of the thread
  in_thread([] { launch(2); });
  t.drain();
  CHECK(t.path_of(1) == "abandoned");
  CHECK(t.path_of(2).empty());
  REQUIRE(t.rows() == 1);
  CHECK(t.cell<uint8_t>("is_open", 0) == 1);
}

TEST_CASE("a region still open has a row when the result is taken, and its own once it is left") {
  Tracked t;
  const uint64_t id = enter("long");
  t.drain();
  t.tracker.write_open_regions(t.store, now_ns());
  REQUIRE(t.rows() == 1);
  CHECK(t.cell<uint8_t>("is_open", 0) == 1);
  launch(1);
  exit_region(id, 0);
  t.drain();
  REQUIRE(t.rows() == 2);
  CHECK(t.cell<uint8_t>("is_open", 1) == 0);
  CHECK(t.cell<uint32_t>("instance", 0) == t.cell<uint32_t>("instance", 1));
  CHECK(t.path_of(1) == "long");
}

TEST_CASE("what was entered before the session is nobody's") {
  uint64_t older = 0;
  {
    const Tracked before;
    older = enter("older");
  }
  Tracked t;
  launch(1);
  exit_region(older, 0);
  launch(2);
  t.drain();
  CHECK(t.path_of(1).empty());
  CHECK(t.path_of(2).empty());
  CHECK(t.rows() == 0);
}

TEST_CASE("a full ring keeps room for exits, and counts what it has no room for") {
  Tracked t;
  g_region_overflow.store(0);
  std::vector<uint64_t> open;
  uint64_t refused = 0;
  for (uint32_t i = 0; i < kRingEvents; ++i) {
    const uint64_t id = enter("deep");
    if (id != 0)
      open.push_back(id);
    else
      ++refused;
  }
  CHECK(open.size() == kRingEvents / 2);
  CHECK(g_region_overflow.load() == refused);
  for (auto id = open.rbegin(); id != open.rend(); ++id) exit_region(*id, 0);
  CHECK(g_region_overflow.load() == refused);  // none of the exits
  t.drain();
  CHECK(t.rows() == open.size());
  launch(1);
  t.drain();
  CHECK(t.path_of(1).empty());
}

}  // namespace
}  // namespace cuptiprof
