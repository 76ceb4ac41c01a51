// CUDA graphs as the session sees them: where each node was captured, and how many pieces of work a launch of
// an executable graph has. Rebuilt from the event rings by the decoder thread; the counts are anybody's.
//
// What a graph's work is given is what was open where its node was captured. Copies (of a graph that is
// cloned, added to another one, instantiated) have what their original has; an executable node that is
// updated has what the node has that it was updated from. Where the original is older than the session,
// nobody knows.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "collect/graphs/capture_sites.h"
#include "store/losses.h"
#include "threads/thread_slots.h"

namespace cuptiprof {

class GraphTracker {
 public:
  // Which work has records.
  struct Recorded {
    bool kernels = false, memcpys = false, memsets = false;
  };
  // Of launches of graphs since the session began. `work`: kernels, copies and sets that have records.
  struct Counts {
    uint64_t launches = 0;
    uint64_t unknown_launches = 0;  // of graphs that were made before the session: their work is not counted
    uint64_t work = 0;
    uint64_t received = 0;
  };

  GraphTracker(size_t max_bytes, Recorded recorded, Losses& losses);

  void created(uint64_t node, const CaptureSite& at);
  // All other events of graphs; `slot`: whose ring they were in.
  void apply(uint32_t slot, const Event& event);
  // What was finished a while ago has been asked for: its records come before the next period but one.
  void next_period() { ++x_period; }

  // CaptureSites::each_site.
  void each_site(auto&& visit) { x_sites.each_site(visit); }
  // A record of this node's work came. `source`: the node that it was instantiated or last updated from,
  // where the record says so (CUDA 13.4); 0: it does not. Null: nobody knows where it was captured.
  const CaptureSite* received(uint64_t node, uint64_t source, uint32_t correlation);

  Counts counts() const;

 private:
  struct Executable {
    uint32_t number = 0;
    uint32_t nodes = 0;      // in the table, of all kinds
    uint32_t work = 0;       // of those, what has records
    bool is_counted = true;  // each launch does all of `work` once
  };

  void cloned(uint32_t slot, const Event& event);
  void begin(uint32_t slot);
  void instantiated(uint32_t slot, uint64_t handle);
  void ended(uint64_t handle);
  void changed(uint64_t handle);
  void launched(const Event& event);
  CaptureSites::Node* put(uint64_t node);
  uint32_t site(const CaptureSite& at);
  void make_room();
  bool has_records(uint32_t node_type) const;

  const Recorded x_recorded;
  Losses& x_losses;
  CaptureSites x_sites;
  uint32_t x_period = 1;
  uint32_t x_made_room_in = 0;
  uint32_t x_executables = 0;
  uint32_t x_last_launch = 0;                            // correlation ID of the last launch of a graph
  std::unordered_map<uint32_t, Executable> x_begun;      // by slot: between its two callbacks
  std::unordered_map<uint64_t, Executable> x_by_handle;  // CUgraphExec
  std::unordered_map<uint32_t, uint32_t> x_ended;        // number -> period, while nodes of it are known
  std::atomic<uint64_t> x_launches{0}, x_unknown_launches{0}, x_work{0}, x_received{0};
};

}  // namespace cuptiprof
