#include <memory>
#include <set>
#include <string>
#include <vector>

#include "collect/regions/region_tracker.h"
#include "collect/regions/regions.h"
#include "collect/regions/scope_labels.h"
#include "collect/regions/scope_texts.h"
#include "doctest/doctest.h"
#include "table_cells.h"
#include "threads/launch_scopes.h"
#include "threads/open_start_end.h"

namespace cuptiprof {
namespace {

std::string number(uint32_t i) { return "request " + std::to_string(i); }

// Labels of one session, with room for a few hundred.
struct FewLabels {
  FewLabels() {
    forget_labels();
    set_label_budget(128u << 10);
  }
  ~FewLabels() {
    forget_labels();
    set_label_budget(16u << 20);
    g_labels_lost.store(0);
  }
};

TEST_CASE("labels: those of the last two generations are known, and what is in use; no ID is given twice") {
  const FewLabels room;
  const uint32_t open = region_label_id("open for weeks"), gone = region_label_id("gone");
  std::set<uint32_t> given{open, gone};
  uint32_t last = 0;
  for (uint32_t i = 0; i < 20'000; ++i) {
    last = region_label_id(number(i));
    CHECK(given.insert(last).second);
    CHECK(scope_label(last).name == number(i));
    if (wants_to_age_labels()) age_labels({open});
  }
  CHECK(g_labels_lost.load() == 0);
  CHECK(scope_label(open).name == "open for weeks");
  CHECK(scope_label(last).name == number(19'999));
  CHECK(scope_label(gone).name == kLostName);
  CHECK(g_labels_lost.load() == 1);
  const uint32_t again = region_label_id("gone");
  CHECK(again > last);
  CHECK(scope_label(again).name == "gone");
  CHECK(region_label_id("gone") == again);
}

TEST_CASE("labels: what nobody makes room for is \"(other)\", and counted") {
  const FewLabels room;
  for (uint32_t i = 0; i < 2'000; ++i) region_label_id(number(i));
  CHECK(g_labels_lost.load() > 0);
  CHECK(scope_label(region_label_id("one more")).name == kOtherScopes);
}

TEST_CASE("a trie: nodes of the last two generations are known, and none stands for another's path") {
  auto trie = std::make_unique<ScopeTrie>();
  const uint32_t first = trie->child(trie->child(0, 1), 2);
  trie->age();
  CHECK(trie->labels(first) == std::vector<uint32_t>{1, 2});
  CHECK(trie->child(0, 3) != trie->child(first, 3));
  CHECK(trie->labels(trie->child(first, 3)) == std::vector<uint32_t>{1, 2, 3});
  trie->age();
  CHECK_FALSE(trie->holds(first));
  std::set<uint32_t> seen{first};
  for (uint32_t i = 0; i < 40; ++i, trie->age()) {
    const uint32_t same = trie->child(trie->child(0, 1), 2);
    CHECK(seen.insert(same).second);
    CHECK(trie->labels(same) == std::vector<uint32_t>{1, 2});
    CHECK(trie->labels(first).empty());
    // Somebody who was asleep since then: nobody takes what he makes for a path of now.
    CHECK_FALSE(trie->holds(trie->child(first, 2)));
  }
}

TEST_CASE("a thread's open scopes have nodes of the generation that runs") {
  LaunchScopes scopes;
  scopes.push(11, 1);
  scopes.push(12, 1);
  for (int i = 0; i < 5; ++i) {
    CHECK(g_scope_trie.labels(scopes.node()) == std::vector<uint32_t>{11, 12});
    g_scope_trie.age();
  }
  std::set<uint32_t> labels;
  scopes.each_label([&](uint32_t label) { labels.insert(label); });
  CHECK(labels == std::set<uint32_t>{11, 12});
}

// A decoder of a session without end, with room for a thousand paths and few labels.
struct Ageing {
  FewLabels room;
  Losses losses;
  CorrelationMap calls{1u << 20, {.origins = true, .start_end = true}};
  GraphTracker graphs{1u << 20, {true, true, true}, losses};
  RegionTracker tracker{(start(), calls), losses, 1, &graphs, nullptr, true};
  Store store{Keep::kLatest, 64u << 20, losses};

  static void start() {
    reserve_thread_slots();
    set_region_mode(kRegionsOn, true);
  }
  ~Ageing() {
    set_region_mode(kRegionsOn, false);
    g_open_start_end.forget();
  }

  static ThreadSlot& slot() { return *this_thread_slot(); }
  static void write(EventKind kind, uint32_t id, uint64_t task = 0, uint64_t object = 0) {
    REQUIRE(
        slot().ring.push({.stamp = read_stamp(), .task = task, .object = object, .id = id, .kind = kind}));
  }
  static void launch(uint32_t correlation) {
    REQUIRE(slot().ring.push({.stamp = read_stamp(),
                              .task = 0,
                              .origin = {slot().scopes.node(), 0},
                              .id = correlation,
                              .kind = EventKind::kLaunch}));
  }
  static uint64_t enter(const std::string& name) {
    return enter_region(g_region_mode.load(), region_label_id(name), nullptr, 0);
  }
  void drain() {
    tracker.drain(store);
    if (tracker.wants_to_age_scopes()) {
      tracker.age_scopes();
      ++aged;
    }
  }
  std::string text(uint32_t id) { return std::string(store.strings().at(id)); }
  std::string path_of(uint32_t correlation) {
    const CallSite* site = calls.find(correlation);
    return site ? text(tracker.path_id(store, site->node)) : "-";
  }
  uint32_t aged = 0;
};

TEST_CASE("regions without end: the newest are known, what is open stays, and no launch has another's name") {
  Ageing t;
  const uint64_t serve = t.enter("serve");
  const uint64_t graph_made = t.enter("capture");
  t.write(EventKind::kNodeCreated, 0, 0, 77);
  exit_region(graph_made, 0);
  constexpr uint32_t kRequests = 20'000;
  uint32_t lost = 0;
  for (uint32_t i = 1; i <= kRequests; ++i) {
    const uint64_t id = t.enter(number(i));
    t.launch(i);
    exit_region(id, 0);
    if (i % 50 != 0) continue;
    t.drain();
    for (const uint32_t before : {0, 49, 400, 3000, 9000}) {
      if (before >= i) continue;
      const std::string path = t.path_of(i - before);
      if (path == kLostName) ++lost;
      const bool right = path == "serve/" + number(i - before) || (path == kLostName && before >= 400);
      CHECK_MESSAGE(right, path << " of " << i - before);
    }
  }
  CHECK(t.aged > 10);
  CHECK(lost > 0);
  CHECK(g_labels_lost.load() == 0);
  CHECK(t.losses.texts_lost.load() == lost);  // by those who asked
  t.launch(kRequests + 1);
  exit_region(serve, 0);
  t.drain();
  CHECK(t.path_of(kRequests + 1) == "serve");
  const CaptureSite* site = t.graphs.received(77, 0, kRequests);
  REQUIRE(site);
  CHECK(t.text(t.tracker.path_id(t.store, site->node)) == "serve/capture");
  const Table& rows = t.store.table(TableId::regions);
  REQUIRE(rows.rows() == kRequests + 2);
  for (uint32_t i = 1; i <= kRequests; ++i) CHECK(t.text(cell_of<uint32_t>(rows, "name", i)) == number(i));
  CHECK(t.text(cell_of<uint32_t>(rows, "name", kRequests + 1)) == "serve");
}

TEST_CASE("names longer than the room: fewer are known, and the newest among them") {
  Ageing t;
  for (uint32_t i = 1; i <= 3'000; ++i) {
    const uint64_t id = t.enter(number(i) + std::string(1000, 'x'));
    t.launch(i);
    exit_region(id, 0);
    if (i % 10 == 0) t.drain();
    if (i % 10 == 0) CHECK(t.path_of(i) == number(i) + std::string(1000, 'x'));
  }
  CHECK(g_labels_lost.load() == 0);
}

TEST_CASE("a region that was handed on keeps its path as long as it is open") {
  Ageing t;
  const uint64_t outer = t.enter("handed on");
  t.write(EventKind::kHandOver, 5);
  for (uint32_t i = 1; i <= 5'000; ++i) {
    const uint64_t id = t.enter(number(i));
    exit_region(id, 0);
    if (i % 100 == 0) t.drain();
  }
  t.write(EventKind::kAdopt, 5, 1);
  REQUIRE(t.slot().ring.push(
      {.stamp = read_stamp(), .task = 1, .origin = {}, .id = 9'000, .kind = EventKind::kLaunch}));
  exit_region(outer, 0);
  t.drain();
  CHECK(t.path_of(9'000) == "handed on");
}

TEST_CASE("scopes of launches without end: of the last two generations, and never another's") {
  Ageing t;
  ScopeTexts texts;
  uint32_t generation = g_scope_trie.generation();
  LaunchScopes::forget_all();
  t.slot().scopes.push(scope_label_id(ScopeSource::kNvtx, {}, "serve"), 1);
  uint32_t lost = 0;
  for (uint32_t i = 1; i <= 10'000; ++i) {
    t.slot().scopes.push(scope_label_id(ScopeSource::kNvtx, {}, number(i)), 1);
    t.launch(i);
    t.slot().scopes.pop(1);
    if (i % 20 != 0) continue;
    t.drain();
    if (g_scope_trie.generation() != generation) texts.forget_string_ids();
    generation = g_scope_trie.generation();
    for (const uint32_t before : {0, 19, 5000}) {
      if (before >= i) continue;
      const std::string text = t.text(texts.of(t.store, t.calls.origin(i - before).scopes).nvtx);
      lost += text == kLostName;
      const bool right = text == "serve/" + number(i - before) || (text == kLostName && before == 5000);
      CHECK_MESSAGE(right, text << " of " << i - before);
    }
  }
  CHECK(lost > 0);
  CHECK(t.losses.texts_lost.load() == lost);
  t.slot().scopes.pop(1);
}

TEST_CASE("start/end ranges without end") {
  Ageing t;
  for (uint32_t i = 1; i <= 20'000; ++i) {
    t.write(EventKind::kRangeStart, scope_label_id(ScopeSource::kNvtx, {}, number(i)), i);
    t.launch(i);
    t.write(EventKind::kRangeEnd, 0, i);
    if (i % 20 != 0) continue;
    t.drain();
    for (const uint32_t before : {0, 19, 9000}) {
      if (before >= i) continue;
      const uint32_t set = t.calls.start_end(i - before);
      const bool is_lost = set == NvtxMarkers::kLostSet && before == 9000;
      const bool right = is_lost || nvtx_ranges(t.tracker.start_end_labels(set), ',') == number(i - before);
      CHECK_MESSAGE(right, set << " of " << i - before);
    }
  }
  CHECK(g_labels_lost.load() == 0);
  CHECK(t.calls.start_end(1'000) == NvtxMarkers::kLostSet);
}

TEST_CASE("configurations that no kernel has any more go, and those that stay are those of their kernels") {
  Losses losses;
  Store store(Keep::kLatest, 4u << 20, losses);
  const Table& kernels = store.table(TableId::kernels);
  const Table& configs = store.table(TableId::launch_configs);
  const uint32_t kKernels = 50'000;
  bool right = true;
  for (uint32_t i = 1; i <= kKernels; ++i) {
    rows::launch_configs config{};
    config.grid_x = static_cast<int32_t>(i % 10 == 0 ? 0 : i);
    rows::kernels row{};
    row.start = i;
    row.correlation_id = i;
    row.config = store.config_id(config);
    store.append(row);
    if (!store.wants_to_age()) continue;
    store.age({});
    for (size_t k = 0; k < kernels.rows(); ++k) {
      const auto of = cell_of<uint32_t>(kernels, "correlation_id", k);
      const auto at = cell_of<uint32_t>(kernels, "config", k);
      right &= at < configs.rows() &&
               cell_of<int32_t>(configs, "grid_x", at) == static_cast<int32_t>(of % 10 == 0 ? 0 : of);
    }
  }
  CHECK(right);
  CHECK(losses.configs_lost.load() == 0);
  CHECK(configs.rows() < 5'000);
  CHECK(kernels.rows() > 500);
  CHECK(cell_of<uint32_t>(kernels, "correlation_id", kernels.rows() - 1) == kKernels);
  CHECK(store.used_bytes() <= store.budget_bytes());
}

}  // namespace
}  // namespace cuptiprof
