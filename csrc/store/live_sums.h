// What a session that runs has collected so far, as sums by name: for whoever watches it (`cuptiprof top`).
//
// The decoder shows its store after each buffer; only rows that came since are read, while they are still in
// its cache. Nothing is copied, and rows that are evicted later stay in the sums. Bounded memory: names past
// the limit are one. Any thread may take() what there is: it waits at most for one buffer's rows.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_table.h"
#include "store/busy_time.h"
#include "store/store.h"

namespace cuptiprof {

struct WorkSum {
  uint64_t count = 0;
  uint64_t bytes = 0;
  int64_t ns = 0;
  void add(int64_t time, uint64_t size) { ++count, ns += time, bytes += size; }
  WorkSum& operator+=(const WorkSum& o) { return count += o.count, bytes += o.bytes, ns += o.ns, *this; }
  WorkSum& operator-=(const WorkSum& o) { return count -= o.count, bytes -= o.bytes, ns -= o.ns, *this; }
};

// Sums of one name: since the session began, and since the last take().
struct NamedSum {
  std::string name;
  WorkSum all, since;
};

// Sums by texts of a store, whose numbers are looked up once each.
class NameSums {
 public:
  // By the number of a text in `store`, which forget_store() makes unknown.
  void add(Store& store, uint32_t id, int64_t ns) {
    if (id >= x_of_store.size() || x_of_store[id] == 0) look_up(store, id);
    const uint32_t at = x_of_store[id] - 1;
    x_all[at].add(ns, 0);
    x_since[at].add(ns, 0);
  }
  void forget_store() { x_of_store.clear(); }
  // The `most` names with the longest times; those since the last call begin anew.
  std::vector<NamedSum> take(size_t most);
  // Sums that only grow, however the order of names changes (counters of a monitoring system): a name that is
  // among the `most` with the longest times has a sum of its own from then on, as long as fewer than `room`
  // have. The last sum, kOthers, is all that is in none: of other names, and what came of these before they
  // had their own.
  std::vector<NamedSum> standing(size_t most, size_t room);
  size_t names() const { return x_names.size(); }

  static constexpr size_t kMaxBytes = 4u << 20;
  static constexpr std::string_view kOthers = "(other names)";

 private:
  struct Own {
    uint32_t at;
    WorkSum before;  // told of in kOthers, and there to stay
  };
  void look_up(Store& store, uint32_t id);
  std::vector<uint32_t> longest(size_t most) const;

  StringTable x_texts;
  std::vector<uint32_t> x_of_text;   // by ID in x_texts: index into the sums + 1
  std::vector<uint32_t> x_of_store;  // by ID in the store: index into the sums + 1; 0: not looked up
  std::vector<std::string_view> x_names;
  std::vector<WorkSum> x_all, x_since;
  std::vector<WorkSum> x_told;  // x_all at the last standing()
  std::vector<Own> x_own;
  std::vector<bool> x_has_own;
};

class LiveSums {
 public:
  static constexpr size_t kCopyKinds = 16;
  static constexpr size_t kMaxDevices = 256;

  struct Taken {
    std::vector<NamedSum> kernels, regions;  // regions: kernels by the innermost region of their launch
    size_t kernel_names = 0, region_names = 0;
    std::array<std::pair<WorkSum, WorkSum>, kCopyKinds> copies;  // by kind: all, since the last
    std::pair<WorkSum, WorkSum> sets;
    std::map<uint32_t, int64_t> busy;  // ns by device
    uint64_t allocations = 0;          // allocations and releases of device memory that were seen
    int64_t allocated = 0;             // bytes of device memory
    uint64_t missed = 0;               // rows that were evicted before they could be read
  };

  // The rows that came since the last call, of a store that only grows at its head.
  void look(Store& store);
  // The next store is another one, with texts of its own.
  void next_store();
  // The store gave its texts other IDs.
  void forget_string_ids();
  Taken take(size_t most_names);
  // Names as NameSums::standing() has them, nothing since the last; for one who asks again and again.
  Taken standing(size_t most_names, size_t room);

 private:
  Taken without_names();
  // The first new row; all before it were looked at.
  size_t first_new(Table& table, TableId id);
  void kernels(Store& store);
  void copies(Store& store);
  void sets(Store& store);
  void memory(Store& store);
  BusyTime& busy(uint32_t device) { return x_busy[device < kMaxDevices ? device : kMaxDevices - 1]; }

  std::mutex x_mutex;  // guards all below
  std::array<uint64_t, kTableCount> x_seen{};
  NameSums x_kernels, x_regions;
  std::map<uint32_t, BusyTime> x_busy;
  Taken x_sums;  // without names and times
};

}  // namespace cuptiprof
