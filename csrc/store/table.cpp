#include "store/table.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "store/page_warmer.h"

namespace cuptiprof {
namespace {

size_t page_size() {
  static const size_t size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

constexpr size_t kFewestRows = 1024;        // whatever the budget
constexpr size_t kSlackRows = 4096;         // so that a small table does not move at every other row
constexpr size_t kMaxStretch = 32768;       // rows that are warmed at a time
constexpr size_t kLongColumn = 64u << 20;   // bytes from which a column is worth huge pages
constexpr size_t kSmallPages = 256u << 10;  // of a long column, its beginning, which gets none
constexpr size_t kSlice = 1u << 20;         // bytes that are moved at a time

size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

int age_column(const TableSpec& spec) {
  for (size_t c = 0; c < spec.columns.size(); ++c)
    if (std::strcmp(spec.columns[c].name, "end") == 0) return static_cast<int>(c);
  return spec.time_column;
}

}  // namespace

Table::Table(const TableSpec& spec, size_t max_live_rows, PageWarmer* warmer)
    : x_spec(spec),
      x_warmer(warmer),
      x_row_bytes(spec.dense_row_bytes()),
      x_max_live_rows(std::max(max_live_rows, kFewestRows)),
      x_age_column(age_column(spec)) {
  for (const auto& c : spec.columns) {
    x_widths.push_back(width_of(c.type));
    x_in_use.push_back(!c.sparse);
  }
  x_columns.assign(x_widths.size(), nullptr);
  x_released.assign(x_widths.size(), 0);
}

Table::~Table() {
  if (!x_base) return;
  if (x_warmer) x_warmer->forget(this);
  munmap(x_base, x_range_bytes);
}

size_t Table::use(size_t c) {
  if (x_in_use[c]) return 0;
  x_in_use[c] = 1;
  ++x_sparse_in_use;
  x_row_bytes += x_widths[c];
  return rows() * x_widths[c];
}

void Table::reserve() {
  // Three times the live rows: the move to the front then costs a third of a copy per row at worst. Less
  // where the address space is limited (ulimit -v).
  for (const size_t factor : {3, 2, 1}) {
    const size_t rows = x_max_live_rows * factor + kSlackRows;
    size_t total = 0;
    for (const size_t w : x_widths) total += round_up(rows * w, page_size());
    void* range =
        mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) continue;
    x_base = static_cast<char*>(range);
    x_range_bytes = total;
    x_capacity = rows;
    char* at = x_base;
    for (size_t c = 0; c < x_widths.size(); ++c) {
      x_columns[c] = at;
      const size_t bytes = round_up(rows * x_widths[c], page_size());
      // Long columns grow by huge pages (a fault costs more than the rows of a small page do); the first part
      // does not, so that short runs and small budgets stay small.
      if (x_max_live_rows * x_widths[c] >= kLongColumn)
        madvise(at + kSmallPages, bytes - kSmallPages, MADV_HUGEPAGE);
      at += bytes;
    }
    return;
  }
  throw std::bad_alloc();
}

void Table::make_space() {
  if (!x_base)
    reserve();
  else if (x_head == x_capacity)
    move_to_front();
  warm_ahead();
}

// Asks for the stretch after the next one, so that there is always one stretch of rows ready.
void Table::warm_ahead() {
  // A sixty-fourth of what the budget allows, so that what is ready but unused does not count.
  const size_t stretch = std::clamp<size_t>(x_max_live_rows / 64, 512, kMaxStretch);
  x_next_stop = std::min(x_capacity, x_head + stretch);
  if (!x_warmer || x_head < stretch) return;  // short tables need no help
  const size_t from = std::max(x_head, x_warmed);
  const size_t until = std::min(x_capacity, x_head + 2 * stretch);
  if (until <= from) return;
  for (size_t c = 0; c < x_columns.size(); ++c) {
    if (!x_in_use[c]) continue;
    const size_t begin = from * x_widths[c] / page_size() * page_size();
    const size_t end = round_up(until * x_widths[c], page_size());
    x_warmer->want(this, x_columns[c] + begin, end - begin);
  }
  x_warmed = until;
}

void Table::move_to_front() {
  if (x_warmer) x_warmer->forget(this);
  const size_t live = rows();
  if (x_tail == 0) throw std::bad_alloc();  // more live rows than promised
  // In slices: the old pages of one are given back before the next is touched.
  for (size_t c = 0; c < x_columns.size(); ++c) {
    if (!x_in_use[c]) continue;
    const size_t w = x_widths[c];
    const size_t bytes = live * w;
    const size_t from = x_tail * w;
    for (size_t done = 0; done < bytes; done += kSlice) {
      const size_t n = std::min(kSlice, bytes - done);
      std::memmove(x_columns[c] + done, x_columns[c] + from + done, n);
      const size_t given_back = (from + done + n) / page_size() * page_size();
      if (from >= bytes && given_back > x_released[c]) {
        madvise(x_columns[c] + x_released[c], given_back - x_released[c], MADV_DONTNEED);
        x_released[c] = given_back;
      }
    }
    const size_t keep = round_up(bytes, page_size());
    const size_t end = round_up(x_head * w, page_size());
    if (end > keep) madvise(x_columns[c] + keep, end - keep, MADV_DONTNEED);
    x_released[c] = 0;
  }
  x_head = live;
  x_tail = 0;
  x_warmed = 0;
}

void Table::release_front() {
  for (size_t c = 0; c < x_columns.size(); ++c) {
    if (!x_in_use[c]) continue;
    const size_t until = x_tail * x_widths[c] / page_size() * page_size();
    if (until > x_released[c]) {
      madvise(x_columns[c] + x_released[c], until - x_released[c], MADV_DONTNEED);
      x_released[c] = until;
    }
  }
}

void Table::copy_from(const Table& other) {
  for (size_t c = 0; c < x_widths.size(); ++c)
    if (other.x_in_use[c]) use(c);
  if (other.rows() == 0) return;
  reserve();
  for (size_t c = 0; c < x_widths.size(); ++c)
    if (x_in_use[c]) std::memcpy(x_columns[c], other.column(c), other.rows() * x_widths[c]);
  x_head = x_next_stop = other.rows();
}

void Table::evict(size_t n) {
  n = std::min(n, rows());
  x_tail += n;
  x_evicted += n;
  if (x_base) release_front();
}

void Table::compact(const uint8_t* flags) {
  const size_t live = rows();
  size_t kept = 0;
  for (size_t c = 0; c < x_columns.size(); ++c) {
    if (!x_in_use[c]) continue;
    const size_t w = x_widths[c];
    char* column = x_columns[c] + x_tail * w;
    kept = 0;
    for (size_t i = 0; i < live; ++i) {
      if (!flags[i]) continue;
      if (kept != i) std::memcpy(column + kept * w, column + i * w, w);
      ++kept;
    }
  }
  if (live != 0) x_head = x_tail + kept;
}

int64_t Table::age_at(size_t row) const {
  int64_t t;
  std::memcpy(&t, column(static_cast<size_t>(x_age_column)) + row * sizeof t, sizeof t);
  return t;
}

size_t Table::rows_before(int64_t time) const {
  size_t n = 0;
  while (n < rows() && age_at(n) < time) ++n;
  return n;
}

}  // namespace cuptiprof
