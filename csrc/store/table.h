// One table: each column a window that slides over a reserved range of addresses.
//
// Rows are appended at the head and evicted at the tail. Memory behind the tail goes back to Linux; when
// the head reaches the end of the range the live rows move to its front. So a column is always one contiguous
// array, which NumPy and Arrow view without a copy, and a table that grows or rolls never reallocates.
//
// A sparse column is not written until its first value other than 0: untouched memory of the range reads as 0
// and costs nothing.
//
// One thread at a time: the decoder while it is filled, then whoever has the result.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "store/schema.h"

namespace cuptiprof {

class PageWarmer;

class Table {
 public:
  // warmer: may be null; must outlive the table. No memory is reserved before the first row.
  Table(const TableSpec& spec, size_t max_live_rows, PageWarmer* warmer);
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  const TableSpec& spec() const { return x_spec; }
  size_t rows() const { return x_head - x_tail; }
  // Rows that were there once, and are not any more.
  uint64_t evicted() const { return x_evicted; }
  // Memory a row takes: dense columns and the sparse ones in use.
  size_t row_bytes() const { return x_row_bytes; }
  bool in_use(size_t c) const { return x_in_use[c] != 0; }
  bool any_sparse_in_use() const { return x_sparse_in_use != 0; }
  // A sparse column gets its first value; returns the bytes that its rows take from now on.
  size_t use(size_t c);

  // First live value of a column; valid until the next append or evict.
  char* column(size_t c) { return const_cast<char*>(std::as_const(*this).column(c)); }
  const char* column(size_t c) const { return x_base ? x_columns[c] + x_tail * x_widths[c] : nullptr; }

  // Room for one more row, of which this is the index into base(c): the caller writes every column in use
  // there. Throws std::bad_alloc when the address range cannot be had (the decoder counts the row as lost).
  size_t append_row() {
    if (x_head == x_next_stop) [[unlikely]]
      make_space();
    return x_head++;
  }
  // Where a column begins, rows that were evicted included; changes when append_row() moves the rows.
  char* base(size_t c) { return x_columns[c]; }

  // Drops the oldest n rows and gives their memory back.
  void evict(size_t n);
  // Keeps the rows whose flag is not 0 (flags: one byte a live row), in order. Their memory is not given
  // back.
  void compact(const uint8_t* flags);
  // The live rows of another table of the same spec and room; this one is empty. Throws std::bad_alloc.
  void copy_from(const Table& other);
  // Time to which a row belongs when old ones go: its end, or the only one it has. Only for tables with a
  // time column. Rows are in the order in which they came, which is nearly that of these times.
  int64_t age_at(size_t row) const;
  // The oldest rows that are older than this.
  size_t rows_before(int64_t time) const;

 private:
  void make_space();
  void move_to_front();
  void warm_ahead();
  void reserve();
  void release_front();

  const TableSpec& x_spec;
  PageWarmer* x_warmer;
  size_t x_row_bytes;
  size_t x_max_live_rows;
  int x_age_column;
  size_t x_capacity = 0;  // rows in the reserved range; 0: not reserved yet
  size_t x_head = 0;
  // Row at which make_space() is due: the range ends, or it is time to warm more of it.
  size_t x_next_stop = 0;
  size_t x_warmed = 0;  // rows up to here were asked for
  size_t x_tail = 0;
  uint64_t x_evicted = 0;
  char* x_base = nullptr;
  size_t x_range_bytes = 0;
  std::vector<char*> x_columns;
  std::vector<size_t> x_widths;
  std::vector<uint8_t> x_in_use;
  size_t x_sparse_in_use = 0;
  std::vector<size_t> x_released;  // bytes of each column already given back
};

}  // namespace cuptiprof
