// Regions by CUPTI's external correlation: the other way of attributing work, kept to measure it against
// launch callbacks.
//
// A region's entry pushes an ID on the calling thread's stack inside CUPTI, its exit pops it. CUPTI then
// writes, before each API record, a record that joins the newest ID to the call's correlation ID. API records
// are limited to calls that give the GPU work (CUDA 12.5), so nothing of ours runs at a launch. What that
// cannot do: tasks that interleave on one thread share one stack, and launches are not counted as they
// happen, so they are not reconciled with kernel records.
#pragma once
#include <cupti_activity.h>

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "collect/regions/correlation_map.h"
#include "threads/thread_slots.h"

namespace cuptiprof {

struct Api;

enum class Attribution {
  kCallback,  // a callback at each launch writes an event into the thread's ring
  kExternal,
  kNone,  // no regions, no launch count: the least a session can cost
};

// Ours, so that another tool's IDs (Kineto uses CUSTOM0 and CUSTOM1) are not taken for regions.
inline constexpr CUpti_ExternalCorrelationKind kRegionIdKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2;

// API records of the calls that give the GPU work, and the records that join them to our IDs. `all_calls`:
// the session collects driver records anyway. Throws Error.
void enable_external_correlation(const Api& api, bool all_calls);
void disable_external_correlation(const Api& api, bool all_calls) noexcept;

// CUPTI forgets its stacks: regions still open have nothing to pop.
void forget_external_stacks() noexcept;

// What the decoder remembers of regions so that late records find them. Decoder thread only.
class RegionWindow {
 public:
  void enable();
  bool enabled() const { return !x_entries.empty(); }
  // Of a region that was entered since then.
  bool is_of_session(uint64_t id) const;

  // At entry and again at exit: a region that was open for long is then among the newest.
  void put(uint64_t id, const CallSite& site);
  // Null: it was never here, or newer ones took its place.
  const CallSite* find(uint64_t id) const;

  // The region that torch's autograd threads work for; node 0: none. Times rise.
  void inherits_from(int64_t time, const CallSite& site);
  CallSite inherited_at(int64_t time) const;

 private:
  struct Entry {
    uint64_t id = 0;
    CallSite site{};
  };
  struct Change {
    int64_t time;
    CallSite site;
  };
  size_t index_of(uint64_t id) const;

  std::vector<Entry> x_entries;      // direct-mapped by ID
  std::vector<uint64_t> x_began_at;  // by slot: ring position at which the session begins
  std::deque<Change> x_changes;
};

// Records of GPU work whose call is not known yet: their API record lies in a buffer still to come.
class WaitingRecords {
 public:
  // Copies the record. False: it needs no call, or there is no room.
  bool hold(const CUpti_Activity* record, const uint8_t* buffer_end);
  // Correlation ID of a record that is work given by a call; 0: not such a record.
  static uint32_t correlation_of(const CUpti_Activity* record);

  // Calls decode(record) for every record that may go, and forgets those.
  template <typename May, typename Decode>
  void release(May&& may, Decode&& decode) {
    size_t kept = 0;
    for (Record& r : x_records) {
      auto* record = reinterpret_cast<CUpti_Activity*>(r.bytes);
      if (may(correlation_of(record)))
        decode(record);
      else
        x_records[kept++] = r;
    }
    x_records.resize(kept);
  }
  bool empty() const { return x_records.empty(); }

 private:
  static constexpr size_t kMaxRecords = 16384;  // 4 MiB
  struct Record {
    alignas(8) uint8_t bytes[256];  // the longest record known is 248
  };
  std::vector<Record> x_records;
};

}  // namespace cuptiprof
