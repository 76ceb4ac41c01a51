// The decoder's picture of every thread's open regions, rebuilt from the event rings.
//
// A region belongs to (thread, task). A launch gets the innermost region of its task; else of the thread's
// outermost code (regions opened around an event loop). Where a region was handed on (hand_over.h), work
// there belongs to it as long as it is open. Nothing is guessed: all other work has no region. What was open
// before the session began is not known, and nobody's. Decoder thread only.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/stamp_clock.h"
#include "collect/graphs/graph_tracker.h"
#include "collect/regions/correlation_map.h"
#include "collect/regions/nvtx_markers.h"
#include "collect/regions/operator_tracker.h"
#include "collect/regions/region_frames.h"
#include "collect/regions/region_paths.h"
#include "store/store.h"
#include "threads/thread_slots.h"

namespace cuptiprof {

class RegionTracker {
 public:
  // Who is told of events of CUDA graphs, and of operators; null: nobody.
  // `ages`: names of scopes come without end, and those that nobody has any more go.
  RegionTracker(CorrelationMap& calls, Losses& losses, size_t path_bytes = 16u << 20,
                GraphTracker* graphs = nullptr, OperatorTracker* operators = nullptr, bool ages = false);
  ~RegionTracker();

  // Takes all events out of all rings and applies those until now, in time order across threads; region rows
  // go to `store`.
  void drain(Store& store);
  // Rows for regions that are still open, marked is_open, with `now` as their end.
  void write_open_regions(Store& store, int64_t now);

  // String ID in `store` of the path of a CallSite's region node.
  uint32_t path_id(Store& store, uint32_t node) { return x_paths.string_id(store, node); }
  std::string path_text(uint32_t node) const { return x_paths.text(node); }
  // The same of the NVTX ranges in it.
  uint32_t nvtx_id(Store& store, uint32_t node) { return x_paths.nvtx_string_id(store, node); }
  // Labels of the scopes in it, from the outermost.
  std::vector<uint32_t> labels(uint32_t node) const { return x_paths.labels(node); }
  GraphTracker* graphs() const { return x_graphs; }
  // Of Python's stacks: each has its rows once.
  FrameTexts& frame_texts() { return x_frame_texts; }

  // How often the numbers of CorrelationMap::start_end have changed.
  uint32_t start_end_generation() const { return x_set_generation; }
  // Labels of the start/end ranges of CorrelationMap::start_end.
  const std::vector<uint32_t>& start_end_labels(uint32_t set) const { return x_markers.labels(set); }

  // A new store has its own strings.
  void forget_string_ids() {
    forget_texts_of_rows();
    x_frame_texts.forget_string_ids();
  }
  // Whether names of scopes take so much of their room that older ones should go.
  bool wants_to_age_scopes() const;
  // Labels, and nodes of g_scope_trie, of which nothing is open and nothing is on its way, go. After drain(),
  // so that there are no events of before the last time.
  void age_scopes();
  // The store gave its texts other IDs (Store::age).
  void renumber_texts(const std::vector<uint32_t>& now) {
    forget_texts_of_rows();
    x_frame_texts.renumber_texts(now);
  }

 private:
  // Paths go (RegionPaths::age), and all that has their numbers gets the new ones.
  void age_paths(size_t most);
  void age_start_end_sets(size_t most);  // the same, of NvtxMarkers
  // Every node of a path that is open: visit(node), which may change it.
  void each_open_node(auto&& visit);
  // Labels that are open, or that calls in the window have.
  std::vector<uint32_t> labels_in_use();
  void forget_texts_of_rows() {
    x_paths.forget_string_ids();
    if (x_operators) x_operators->forget_string_ids();
  }

  using Frame = std::shared_ptr<RegionFrame>;
  // A region that was entered, or one that was handed to this task (`adopted`: then only id and frame).
  struct OpenRegion {
    uint64_t id = 0;
    uint32_t label = 0;
    uint32_t node = 0;
    uint32_t instance = 0;
    uint32_t parent = 0;
    uint16_t depth = 0;
    bool adopted = false;
    int64_t start = 0;  // run clock
    uint64_t task = 0;
    RegionMetadata* metadata = nullptr;
    Frame frame;  // once it was handed on
  };
  // What work is attributed to.
  struct Place {
    uint32_t node = 0;      // of RegionPaths
    uint32_t instance = 0;  // regions.instance; 0: no region
    uint16_t depth = 0;
  };
  using Stack = std::vector<OpenRegion>;
  struct ThreadState {
    std::unordered_map<uint64_t, Stack> stacks;  // by task; empty ones are erased, except the outermost (0)
    size_t open = 0;                             // regions in all of them
    std::vector<Event> pending;  // taken from the ring; the first `applied` of them are in the stacks
    size_t applied = 0;
    uint64_t first = 0;        // ring position of pending[0]
    LaunchOrigin node_origin;  // of the next graph node that is created
    uint32_t works_for = 0;    // of an autograd thread: the caller's slot + 1; 0: nobody says
  };
  // A region that was handed over (hand_over.h), until somebody adopts it.
  struct Token {
    uint32_t number = 0;
    Frame frame;
  };
  // A thread that called backward and has not come back.
  struct Backward {
    uint32_t slot;
    uint64_t task;
    uint32_t calls;  // one inside another
    bool marked;     // torch's threads know that they work for it
  };

  // The next pending event of a thread.
  void apply_next(Store& store, uint32_t slot);
  void apply(Store& store, uint32_t slot, const Event& e, uint64_t position);
  void enter(uint32_t slot, const Event& e, uint64_t position);
  void exit(Store& store, const Event& e);
  int64_t time_of(const Event& e) const { return x_clock.run_clock(e.stamp); }
  void adopt(uint32_t slot, const Event& e, uint64_t position);
  void backward_begins(uint32_t slot, uint64_t task, bool marked);
  void backward_ends(uint32_t slot);
  std::vector<Backward>::iterator caller_in(uint32_t slot);
  bool in_backward(uint32_t slot);
  void end_thread(Store& store, uint32_t slot, int64_t stamp);
  void close(OpenRegion& r, int64_t stamp);
  // Where work of this thread and task belongs; `innermost`: by its own regions.
  Place work_place(uint32_t slot, uint64_t task, int64_t stamp) const;
  Place innermost(uint32_t slot, uint64_t task, int64_t stamp) const;
  Place place_of(const OpenRegion& r, int64_t stamp) const;
  // Where work of torch's autograd threads belongs: by the regions of the thread that called backward.
  const Backward* served_by(uint32_t slot) const;
  Place called_backward_from(uint32_t slot, int64_t stamp) const;
  Frame frame_of_caller(uint32_t slot);
  Frame frame_of(uint32_t slot, uint64_t task);
  Frame frame_of(uint32_t slot, Stack& stack, uint64_t task);
  // One of torch's autograd threads.
  static bool is_worker(uint32_t slot) { return thread_slot(slot).is_worker.load(std::memory_order_relaxed); }
  static uint32_t tid_of(uint32_t slot) { return thread_slot(slot).tid.load(std::memory_order_relaxed); }
  void write_row(Store& store, const OpenRegion& r, uint32_t tid, int64_t end, bool is_open);

  StampClock x_clock;
  CorrelationMap& x_calls;
  RegionPaths x_paths;
  FrameTexts x_frame_texts;
  NvtxMarkers x_markers;
  GraphTracker* x_graphs;
  OperatorTracker* x_operators;
  const bool x_ages;
  uint32_t x_set_generation = 0;
  std::vector<ThreadState> x_threads;
  std::vector<Token> x_tokens;  // the newest ones, direct-mapped by number
  std::vector<Backward> x_backward;
  uint32_t x_instances = 0;
  uint32_t x_step = 0;  // number of the running training step + 1; 0: none was marked
};

}  // namespace cuptiprof
