#include "store/live_sums.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "store/busy_time.h"
#include "store/losses.h"
#include "store/store.h"

namespace cuptiprof {
namespace {

int64_t union_of(std::vector<std::pair<int64_t, int64_t>> pieces) {
  std::sort(pieces.begin(), pieces.end());
  int64_t sum = 0, until = INT64_MIN;
  for (const auto& [start, end] : pieces) {
    if (end > std::max(start, until)) sum += end - std::max(start, until);
    until = std::max(until, end);
  }
  return sum;
}

rows::kernels kernel(Store& store, const char* name, const char* region, int64_t start, int64_t end,
                     uint32_t device = 0) {
  rows::kernels row;
  row.name = store.text(name);
  row.region = store.text(region);
  row.start = start;
  row.end = end;
  row.device = device;
  return row;
}

TEST_CASE("busy time is the union of what came, in whatever order, looked at meanwhile or not") {
  std::mt19937_64 random(7);
  for (const int64_t disorder : {0, 1000, 100000}) {
    CAPTURE(disorder);
    BusyTime busy;
    std::vector<std::pair<int64_t, int64_t>> all;
    const size_t n = disorder > 1000 ? BusyTime::kKept : 5 * BusyTime::kKept;
    for (size_t i = 0; i < n; ++i) {
      const auto jitter = disorder ? static_cast<int64_t>(random() % static_cast<uint64_t>(disorder)) : 0;
      const int64_t start = static_cast<int64_t>(i) * 100 + jitter;
      all.emplace_back(start, start + static_cast<int64_t>(random() % 180));
      busy.add(all.back().first, all.back().second);
      if (i % 9973 == 0) CHECK(busy.total() == union_of(all));
    }
    CHECK(busy.total() == union_of(all));
  }
}

TEST_CASE("work without times takes none") {
  BusyTime busy;
  busy.add(0, 0);
  busy.add(10, 5);
  CHECK(busy.total() == 0);
}

TEST_CASE(
    "sums go on where rows are evicted and stores change, and what is since the last look begins anew") {
  Losses losses;
  LiveSums sums;
  constexpr int kRows = 60000;
  int64_t at = 0;
  for (int part = 0; part < 3; ++part) {
    Store store(Keep::kLatest, 1u << 20, losses);  // holds a fraction of the rows
    sums.next_store();
    if (part == 1) store.text("another text first");  // numbers differ from store to store
    for (int i = 0; i < kRows; ++i, at += 20) {
      store.append(kernel(store, i % 4 ? "fast" : "slow", i % 2 ? "train/fwd" : "", at, at + (i % 4 ? 1 : 10),
                          static_cast<uint32_t>(i % 2)));
      if (i % 100 == 99) sums.look(store);
    }
    CHECK(store.table(TableId::kernels).rows() < kRows);
    const LiveSums::Taken taken = sums.take(10);
    REQUIRE(taken.kernels.size() == 2);
    CHECK(taken.kernels[0].name == "slow");
    CHECK(taken.kernels[0].since.count == kRows / 4);
    CHECK(taken.kernels[0].since.ns == kRows / 4 * 10);
    CHECK(taken.kernels[0].all.count == static_cast<uint64_t>(part + 1) * kRows / 4);
    CHECK(taken.kernels[1].all.ns == (part + 1) * kRows * 3 / 4);
    REQUIRE(taken.regions.size() == 2);
    CHECK(taken.regions[0].name.empty());
    CHECK(taken.regions[1].all.count == static_cast<uint64_t>(part + 1) * kRows / 2);
    CHECK(taken.missed == 0);
    CHECK(taken.busy.at(0) == int64_t{part + 1} * (kRows / 4 * 10 + kRows / 4));
    CHECK(taken.busy.at(1) == int64_t{part + 1} * kRows / 2);
  }
  CHECK(sums.take(1).kernels.size() == 1);
  CHECK(sums.take(1).kernels[0].since.count == 0);
}

TEST_CASE("rows that went before they were looked at are counted as missed") {
  Losses losses;
  LiveSums sums;
  Store store(Keep::kLatest, 1u << 20, losses);
  for (int i = 0; i < 60000; ++i) store.append(kernel(store, "k", "", i, i + 1));
  sums.look(store);
  const LiveSums::Taken taken = sums.take(10);
  CHECK(taken.missed > 0);
  CHECK(taken.missed + taken.kernels[0].all.count == 60000);
}

TEST_CASE("names past the limit are one") {
  Losses losses;
  LiveSums sums;
  Store store(Keep::kLatest, 64u << 20, losses);
  for (int i = 0; i < 3000; ++i) {
    const std::string name = std::to_string(i) + std::string(4000, 'x');
    store.append(kernel(store, name.c_str(), "", i, i + 1));
  }
  sums.look(store);
  const LiveSums::Taken taken = sums.take(3000);
  CHECK(taken.kernel_names < 3000);
  uint64_t count = 0, others = 0;
  for (const NamedSum& s : taken.kernels) {
    count += s.all.count;
    if (s.name == NameSums::kOthers) others = s.all.count;
  }
  CHECK(count == 3000);
  CHECK(others == 3000 - (taken.kernel_names - 1));
}

TEST_CASE("standing sums never go back, and are all of the work together, whoever is first") {
  Losses losses;
  LiveSums sums;
  Store store(Keep::kLatest, 64u << 20, losses);
  std::mt19937_64 random(11);
  std::map<std::string, WorkSum> before;
  int64_t at = 0, ns = 0;
  uint64_t rows = 0;
  for (int look = 0; look < 60; ++look) {
    for (int i = 0; i < 50; ++i, ++rows) {
      // The names that are launched, and so those that are first, move on.
      const auto name = static_cast<uint64_t>(look) / 3 + random() % 6;
      const auto took = static_cast<int64_t>(random() % 100 * (1 + static_cast<uint64_t>(look)));
      store.append(kernel(store, std::to_string(name).c_str(), "", at, at + took));
      at += took, ns += took;
    }
    sums.look(store);
    if (look % 4 == 0) sums.take(3);  // whoever watches as well
    const LiveSums::Taken taken = sums.standing(4, 10);
    CHECK(taken.kernels.size() <= 11);
    CHECK(taken.kernels.back().name == NameSums::kOthers);
    WorkSum all;
    std::map<std::string, WorkSum> now;
    for (const NamedSum& s : taken.kernels) {
      all += s.all;
      now[s.name] = s.all;
    }
    CHECK(all.count == rows);
    CHECK(all.ns == ns);
    for (const auto& [name, sum] : before) {
      REQUIRE(now.count(name) == 1);
      CHECK(now[name].count >= sum.count);
      CHECK(now[name].ns >= sum.ns);
    }
    before = now;
  }
  CHECK(before.size() == 11);
  REQUIRE(sums.standing(4, 10).regions.size() == 2);
  CHECK(sums.standing(4, 10).regions[0].name.empty());
  CHECK(sums.standing(4, 10).regions[0].all.count == rows);
}

TEST_CASE("memory of the device is what was allocated and not released") {
  Losses losses;
  LiveSums sums;
  Store store(Keep::kLatest, 1u << 20, losses);
  const auto memory = [&](uint8_t operation, uint8_t kind, uint64_t bytes) {
    rows::memory row;
    row.operation = operation;
    row.memory_kind = kind;
    row.bytes = bytes;
    store.append(row);
  };
  memory(1, 3, 1000), memory(1, 5, 500), memory(2, 3, 400), memory(1, 2, 7777);
  sums.look(store);
  CHECK(sums.take(0).allocated == 1100);
  CHECK(sums.take(0).allocations == 3);
}

}  // namespace
}  // namespace cuptiprof
