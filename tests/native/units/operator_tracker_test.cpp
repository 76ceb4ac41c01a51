#include "collect/regions/operator_tracker.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <thread>

#include "collect/regions/region_tracker.h"
#include "collect/regions/regions.h"
#include "collect/regions/scope_labels.h"
#include "doctest/doctest.h"
#include "table_cells.h"

namespace cuptiprof {
namespace {

constexpr char kFunction = 0, kNode = 1;

uint32_t operator_label(const char* name, char scope = kFunction) {
  return scope_label_id(ScopeSource::kOperator, {&scope, 1}, name);
}

uint64_t begin(uint32_t label, uint64_t sequence = 0, uint64_t forward_thread = 0) {
  ThreadSlot& slot = *this_thread_slot();
  const int64_t stamp = read_stamp();
  if (forward_thread != 0)
    REQUIRE(slot.ring.push(
        {.stamp = stamp, .task = forward_thread, .origin = {}, .id = 0, .kind = EventKind::kOperatorDetail}));
  return push_opening(
      slot, {.stamp = stamp, .task = 0, .object = sequence, .id = label, .kind = EventKind::kOperatorEnter});
}

void end(uint64_t id) {
  ThreadSlot& slot = *this_thread_slot();
  REQUIRE(slot.ring.push(
      {.stamp = read_stamp(), .task = 0, .region = id, .id = 0, .kind = EventKind::kOperatorExit}));
  if (slot_of_region(id) == slot.index) --slot.open_regions;
}

void launch_in_operator(uint32_t correlation) {
  REQUIRE(this_thread_slot()->ring.push({read_stamp(), 0, {nullptr}, correlation, EventKind::kLaunch}));
}

struct TrackedOperators {
  Losses losses;
  CorrelationMap calls{1u << 20, {.operators = true}};
  OperatorTracker operators{(start(), 1u << 16), losses};
  RegionTracker tracker{calls, losses, 16u << 20, nullptr, &operators};
  Store store{Keep::kFirst, 16u << 20, losses};

  static void start() {
    reserve_thread_slots();
    set_region_mode(kRegionsOn, true);
    this_thread_slot()->torch_thread.store(7);
  }
  ~TrackedOperators() { set_region_mode(kRegionsOn, false); }

  void drain() { tracker.drain(store); }
  std::string path_of(uint32_t correlation) const {
    return operator_path(g_scope_trie.labels(calls.operator_at(correlation).path));
  }
  template <typename T>
  T cell(std::string_view column, size_t row) {
    return cell_of<T>(store.table(TableId::operators), column, row);
  }
  size_t rows() { return store.table(TableId::operators).rows(); }
  std::string name(size_t row) { return std::string(store.strings().at(cell<uint32_t>("name", row))); }
};

TEST_CASE("a launch belongs to the operators that are open, and each has a row") {
  TrackedOperators t;
  launch_in_operator(1);
  const uint64_t outer = begin(operator_label("aten::linear"));
  const uint64_t inner = begin(operator_label("a/b"));
  launch_in_operator(2);
  end(inner);
  launch_in_operator(3);
  end(outer);
  launch_in_operator(4);
  t.drain();
  CHECK(t.path_of(1).empty());
  CHECK(t.path_of(2) == "aten::linear/a\\/b");
  CHECK(t.path_of(3) == "aten::linear");
  CHECK(t.path_of(4).empty());
  REQUIRE(t.rows() == 2);
  CHECK(t.name(0) == "a/b");
  CHECK(t.cell<uint32_t>("parent", 0) == t.cell<uint32_t>("instance", 1));
  CHECK(t.calls.operator_at(2).instance == t.cell<uint32_t>("instance", 0));
  CHECK(t.cell<uint32_t>("parent", 1) == 0);
  CHECK(t.cell<int64_t>("start", 1) <= t.cell<int64_t>("start", 0));
}

TEST_CASE("a node of backward belongs to the last operator with its sequence number on its thread") {
  TrackedOperators t;
  end(begin(operator_label("aten::linear"), 12));
  const uint64_t outer = begin(operator_label("aten::linear"), 13);
  end(begin(operator_label("aten::addmm"), 13));
  end(outer);
  std::thread([] {
    this_thread_slot()->torch_thread.store(8);
    end(begin(operator_label("aten::other"), 13));
    const uint64_t node = begin(operator_label("AddmmBackward0", kNode), 13, 7);
    end(begin(operator_label("aten::mm")));
    launch_in_operator(1);
    end(node);
    end(begin(operator_label("AddmmBackward0", kNode), 99, 7));
    launch_in_operator(2);
  }).join();
  t.drain();
  REQUIRE(t.rows() == 7);
  REQUIRE(t.name(1) == "aten::addmm");
  REQUIRE(t.name(5) == "AddmmBackward0");
  CHECK(t.cell<uint32_t>("forward", 5) == t.cell<uint32_t>("instance", 1));
  CHECK(t.cell<uint8_t>("backward", 5) == 1);
  CHECK(t.cell<uint8_t>("backward", 4) == 1);  // aten::mm within
  CHECK(t.cell<uint32_t>("forward", 4) == 0);
  CHECK(t.cell<uint32_t>("forward", 6) == 0);  // nobody made it
  CHECK(t.cell<uint8_t>("backward", 3) == 0);
  CHECK(t.calls.operator_at(1).backward);
  CHECK_FALSE(t.calls.operator_at(2).backward);
}

TEST_CASE("what began inside and goes on is of what was around; ends come from any thread") {
  TrackedOperators t;
  const uint64_t mode = begin(operator_label("mode"));
  const uint64_t user = begin(operator_label("user"));
  end(mode);
  launch_in_operator(1);
  std::thread([user] { end(user); }).join();
  launch_in_operator(2);
  const uint64_t open = begin(operator_label("open"));
  t.drain();
  CHECK(t.path_of(1) == "user");
  CHECK(t.path_of(2).empty());
  REQUIRE(t.rows() == 2);
  CHECK(t.cell<uint32_t>("parent", 1) == 0);
  t.tracker.write_open_regions(t.store, now_ns());
  REQUIRE(t.rows() == 3);
  CHECK(t.cell<uint8_t>("is_open", 2) == 1);
  end(open);
  end(region_id(*this_thread_slot(), 1));  // of before the session
  t.drain();
}

TEST_CASE("open operators: found from the top, and by notes of other threads") {
  static OpenOperators open;
  OpenOperators::forget_all();
  uint64_t id = 0;
  REQUIRE(open.has_room());
  open.push(100, 1, 11);
  open.push(200, 2, 22);
  open.push(300, 3, 33);
  NodesMade made;
  CHECK(open.pop(200, &id, &made));
  CHECK(id == 22);
  CHECK_FALSE(open.pop(200, &id, &made));
  CHECK(open.id_of(300, &id));
  CHECK(id == 33);
  CHECK(open.ended_elsewhere(100));
  CHECK(open.ended_elsewhere(12345));  // of before the session
  uint32_t labels[OpenOperators::kMax];
  REQUIRE(open.labels(labels) == 1);
  CHECK(labels[0] == 3);
  OpenOperators::forget_all();
  CHECK(open.labels(labels) == 0);
  CHECK(open.take_forgotten() == 1);
  CHECK(open.take_forgotten() == 0);
  uint32_t held = 0;
  while (open.has_room()) open.push(1000 + held++, 1, 0);
  CHECK(held == OpenOperators::kMax);
  open.clear();
}

}  // namespace
}  // namespace cuptiprof
