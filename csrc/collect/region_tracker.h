// The decoder's picture of every thread's open regions, rebuilt from the event rings.
//
// A region belongs to (thread, task). A launch gets the innermost region of its task; else of the thread's
// outermost code (regions opened around an event loop). A thread that works for another one inherits: a
// thread that never opened a region itself, and torch's autograd threads (by their name, pt_autograd_*) even
// if they did, get the innermost region of the only other thread that has one open. Decoder thread only.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "collect/correlation_map.h"
#include "collect/external_correlation.h"
#include "collect/thread_slots.h"
#include "store/store.h"

namespace cuptiprof {

class RegionTracker {
 public:
  RegionTracker(CorrelationMap& calls, Losses& losses, Attribution attribution = Attribution::kCallback);
  ~RegionTracker();

  // Takes all events out of all rings and applies those until now, in time order across threads; region rows
  // go to `store`.
  void drain(Store& store);
  // Rows for regions that are still open, marked is_open, with `now` as their end.
  void write_open_regions(Store& store, int64_t now);

  // String ID in `store` of the path of a CallSite's region node.
  uint32_t path_id(Store& store, uint32_t node) {
    if (node == 0) return 0;
    const PathNode& n = x_nodes[node];
    return n.generation == x_generation ? n.string_id : intern_path(store, node);
  }
  const std::string& path_text(uint32_t node) const { return x_nodes[node].text; }
  // Attribution::kExternal: an API record and the record before it that joins one of our IDs to its call.
  void joined(uint32_t correlation, uint64_t external_id);
  void called(uint32_t correlation, uint32_t thread, int64_t time);

  // A new store has its own strings.
  void forget_string_ids() { ++x_generation; }

 private:
  struct PathNode {
    std::string
        text;  // names from the outermost joined by '/', "/" and "\" within a name written "\/" and "\\"
    uint32_t string_id = 0;
    uint64_t generation = 0;
  };
  struct OpenRegion {
    uint32_t name;
    uint32_t node;
    uint32_t instance;
    uint32_t parent;
    uint16_t depth;
    int64_t start;
    uint64_t task;
    uint64_t external_id;
    RegionMetadata* metadata;
  };
  using Stack = std::vector<OpenRegion>;
  struct ThreadState {
    std::unordered_map<uint64_t, Stack> stacks;  // by task; empty ones are erased, except the outermost (0)
    size_t open = 0;
    std::vector<Event> pending;  // taken from the ring, not applied yet
    size_t at = 0;
    uint64_t first = 0;  // ring position of pending[0]
  };

  void apply(Store& store, uint32_t slot, const Event& e, uint64_t position);
  void apply_next(Store& store, uint32_t slot);
  void enter(uint32_t slot, const Event& e, uint64_t position);
  void exit(Store& store, uint32_t slot, const Event& e);
  const OpenRegion* innermost(uint32_t slot, uint64_t task) const;
  const OpenRegion* inherited(uint32_t* from = nullptr) const;
  static bool is_worker(uint32_t slot) { return thread_slot(slot).is_worker.load(std::memory_order_relaxed); }
  uint32_t intern_path(Store& store, uint32_t node);
  uint32_t child_node(uint32_t parent, uint32_t name);
  void write_row(Store& store, const OpenRegion& r, uint32_t tid, int64_t end, bool is_open);

  CallSite site_of(uint32_t slot, const OpenRegion& r) const;

  CorrelationMap& x_calls;
  RegionWindow x_window;                       // Attribution::kExternal, as is the next
  std::vector<uint64_t> x_began_at;            // by slot: ring position at which the session begins
  std::unordered_set<uint32_t> x_own_regions;  // threads that opened a region themselves
  Losses& x_losses;
  std::vector<ThreadState> x_threads;
  std::vector<PathNode> x_nodes;
  std::unordered_map<uint64_t, uint32_t> x_children;  // parent node << 32 | name -> node
  uint32_t x_instances = 0;
  size_t x_threads_open = 0;  // threads with an open region, workers not counted
  uint64_t x_generation = 1;
};

}  // namespace cuptiprof
