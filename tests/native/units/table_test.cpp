#include "store/table.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <vector>

#include "doctest/doctest.h"
#include "store/page_warmer.h"
#include "store/store.h"

namespace cuptiprof {
namespace {

constexpr ColumnSpec kColumns[] = {
    {"time", ColumnType::kI64, "ns", "", false},
    {"small", ColumnType::kU16, "", "", false},
    {"rare", ColumnType::kU32, "", "", true},
};
constexpr TableSpec kSpec{"made_up", 0, "", kColumns};
constexpr size_t kTime = 0, kSmall = 1, kRare = 2;

void append(Table& t, int64_t value) {
  const size_t row = t.append_row();
  reinterpret_cast<int64_t*>(t.base(kTime))[row] = value;
  reinterpret_cast<uint16_t*>(t.base(kSmall))[row] = static_cast<uint16_t>(value);
  if (t.in_use(kRare)) reinterpret_cast<uint32_t*>(t.base(kRare))[row] = static_cast<uint32_t>(value);
}

template <typename T>
T at(const Table& t, size_t column, size_t row) {
  T value;
  std::memcpy(&value, t.column(column) + row * sizeof(T), sizeof value);
  return value;
}

// The live rows are first, first + 1, ... in every column.
bool holds_from(const Table& t, int64_t first) {
  for (size_t i = 0; i < t.rows(); ++i) {
    const int64_t value = first + static_cast<int64_t>(i);
    if (at<int64_t>(t, kTime, i) != value || at<uint16_t>(t, kSmall, i) != static_cast<uint16_t>(value))
      return false;
  }
  return true;
}

TEST_CASE("a window that rolls keeps the newest rows, contiguous in every column") {
  std::shared_ptr<PageWarmer> warmer;
  SUBCASE("alone") {}
  SUBCASE("with memory asked for ahead") { warmer = std::make_shared<PageWarmer>(); }
  constexpr int64_t kLive = 3000;
  Table t(kSpec, kLive, warmer.get());
  CHECK(t.column(kTime) == nullptr);
  int64_t oldest = 0;
  bool right = true;
  for (int64_t i = 0; i < 20 * kLive; ++i) {  // several moves to the front of the range
    if (t.rows() == kLive) {
      const size_t n = 1 + static_cast<size_t>(i % 700);
      t.evict(n);
      oldest += static_cast<int64_t>(n);
    }
    append(t, i);
    right = right && t.age_at(0) == oldest && at<int64_t>(t, kTime, t.rows() - 1) == i;
    if (i % 997 == 0) right = right && holds_from(t, oldest);
  }
  CHECK(right);
  CHECK(holds_from(t, oldest));
}

TEST_CASE("more live rows than were promised are refused, not written elsewhere") {
  Table t(kSpec, 1024, nullptr);
  int64_t n = 0;
  CHECK_THROWS_AS(for (;; ++n) append(t, n), std::bad_alloc);
  CHECK(n >= 1024);
  CHECK(t.rows() == static_cast<size_t>(n));
  CHECK(holds_from(t, 0));
  t.evict(1);  // and there is room again
  append(t, n);
  CHECK(holds_from(t, 1));
}

TEST_CASE("a sparse column takes nothing before its first value and is 0 in the rows before") {
  Table t(kSpec, 2000, nullptr);
  for (int64_t i = 0; i < 100; ++i) append(t, i);
  CHECK_FALSE(t.in_use(kRare));
  CHECK_FALSE(t.any_sparse_in_use());
  CHECK(t.row_bytes() == 8 + 2);
  CHECK(t.use(kRare) == 100 * 4);
  CHECK(t.use(kRare) == 0);  // it was already
  CHECK(t.row_bytes() == 8 + 2 + 4);
  append(t, 100);
  for (size_t i = 0; i < 100; ++i) CHECK(at<uint32_t>(t, kRare, i) == 0);
  CHECK(at<uint32_t>(t, kRare, 100) == 100);
}

TEST_CASE("a sparse column first used after the window moved is 0 before") {
  Table t(kSpec, 1024, nullptr);
  for (int64_t i = 0; i < 30'000; ++i) {
    if (t.rows() == 1024) t.evict(100);
    append(t, i);
  }
  t.use(kRare);
  bool zero = true;
  for (size_t i = 0; i < t.rows(); ++i) zero = zero && at<uint32_t>(t, kRare, i) == 0;
  CHECK(zero);
}

TEST_CASE("compact keeps the flagged rows in order") {
  Table t(kSpec, 1024, nullptr);
  t.use(kRare);
  for (int64_t i = 0; i < 300; ++i) append(t, i);
  t.evict(100);
  std::vector<uint8_t> flags(200);
  for (size_t i = 0; i < flags.size(); i += 7) flags[i] = 1;
  t.compact(flags.data());
  CHECK(t.rows() == 29);
  for (size_t i = 0; i < t.rows(); ++i) {
    const auto value = static_cast<int64_t>(100 + 7 * i);
    CHECK(at<int64_t>(t, kTime, i) == value);
    CHECK(at<uint32_t>(t, kRare, i) == static_cast<uint32_t>(value));
  }
}

TEST_CASE("evicting more than there is leaves nothing") {
  Table t(kSpec, 1024, nullptr);
  for (int64_t i = 0; i < 10; ++i) append(t, i);
  t.evict(1000);
  CHECK(t.rows() == 0);
  append(t, 5);
  CHECK(t.age_at(0) == 5);
}

TEST_CASE("a store stays within its budget; each row that is not there is counted") {
  constexpr size_t kBudget = 1u << 20;
  constexpr int64_t kRows = 200'000;
  for (const Keep keep : {Keep::kFirst, Keep::kLatest}) {
    CAPTURE(static_cast<int>(keep));
    Losses losses;
    Store store(keep, kBudget, losses);
    for (int64_t i = 0; i < kRows; ++i) {
      rows::kernels row;
      row.start = row.end = i;
      store.append(row);
      if (store.used_bytes() > kBudget) FAIL("over the budget");
    }
    const Table& t = store.table(TableId::kernels);
    CHECK(t.rows() > 1000);
    CHECK(t.rows() + losses.budget_evicted.load() == kRows);
    const int64_t oldest = t.age_at(0);
    CHECK(oldest == (keep == Keep::kFirst ? 0 : kRows - static_cast<int64_t>(t.rows())));
  }
}

TEST_CASE("what goes goes up to one time in all tables") {
  constexpr int64_t kRows = 200'000, kAround = 100, kLong = 5'000;
  Losses losses;
  Store store(Keep::kLatest, 1u << 20, losses);
  const Table &kernels = store.table(TableId::kernels), &regions = store.table(TableId::regions);
  bool together = true;
  for (int64_t i = 1; i <= kRows; ++i) {
    rows::kernels kernel;
    kernel.start = i - 1, kernel.end = i;
    store.append(kernel);
    for (const int64_t length : {kAround, kLong}) {
      if (i % length != 0) continue;
      rows::regions region;
      region.start = i - length, region.end = i;
      store.append(region);
    }
    if (i % 977 == 0 && losses.budget_evicted.load() != 0) {
      const int64_t kept = kernels.age_at(0), share = static_cast<int64_t>(kernels.rows()) / 32;
      together = together && regions.age_at(0) >= kept - share && regions.age_at(0) <= kept + kAround;
    }
  }
  CHECK(together);
  CHECK(regions.rows() >= kernels.rows() / kAround);
  CHECK(kernels.rows() + regions.rows() + losses.budget_evicted.load() ==
        kRows + kRows / kAround + kRows / kLong);
}

TEST_CASE("rows without times, or out of order, do not keep others") {
  constexpr int64_t kRows = 100'000;
  Losses losses;
  Store store(Keep::kLatest, 1u << 20, losses);
  rows::regions far;
  far.end = std::numeric_limits<int64_t>::max();
  store.append(far);
  for (int64_t i = 0; i < kRows; ++i) {
    rows::kernels kernel;
    kernel.end = i % 3 == 0 ? 0 : i;
    store.append(kernel);
    rows::api_calls call;
    call.end = i;
    store.append(call);
    if (store.used_bytes() > 1u << 20) FAIL("over the budget");
  }
  const size_t rows = store.table(TableId::kernels).rows() + store.table(TableId::api_calls).rows();
  CHECK(rows + store.table(TableId::regions).rows() + losses.budget_evicted.load() == 2 * kRows + 1);
  CHECK(store.table(TableId::api_calls).age_at(0) > kRows / 2);
  CHECK(store.table(TableId::kernels).rows() > 1000);
}

}  // namespace
}  // namespace cuptiprof
