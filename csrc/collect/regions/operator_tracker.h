// The decoder's picture of every thread's open operators of PyTorch (level "full"), out of the event rings:
// rows of `operators`, and which operator a launch belongs to. Decoder thread only.
//
// A node of backward belongs to the operator that made it: the last one to begin, on the thread and with the
// sequence number that the node names, as torch's own profiler has it. Operators nest by thread alone.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "collect/regions/frame_texts.h"
#include "collect/regions/region_paths.h"
#include "store/store.h"
#include "threads/thread_slots.h"

namespace cuptiprof {

// The operator that a launch belongs to.
struct OperatorSite {
  uint32_t path = 0;      // node of g_scope_trie
  uint32_t instance = 0;  // operators.instance; 0: none
  bool backward = false;  // inside a node of backward
};

class OperatorTracker {
 public:
  // Where work of an operator's thread belongs when it begins.
  struct Around {
    uint32_t region = 0;  // node of RegionPaths
    uint32_t instance = 0;
    uint32_t step = 0;
    bool backward = false;  // torch's engine runs it
  };

  // Who writes the texts of rows.
  struct Texts {
    RegionPaths& regions;
    FrameTexts& frames;
  };

  // `forward_bytes`: for which operator made which node of backward; older ones are forgotten.
  OperatorTracker(size_t forward_bytes, Losses& losses);

  void detail(uint32_t slot, const Event& e);
  void enter(uint32_t slot, const Event& e, uint64_t position, int64_t time, const Around& around);
  void exit(Store& store, const Texts& texts, const Event& e, int64_t time);
  // The thread ended with these open.
  void end_thread(Store& store, const Texts& texts, uint32_t slot, int64_t now);
  // Rows of operators that are still open, with `now` as their end.
  void write_open(Store& store, const Texts& texts, int64_t now);

  [[nodiscard]] OperatorSite at(uint32_t slot) const;
  // Nodes of RegionPaths in which open operators are: visit(node), which may change it.
  void each_region(auto&& visit) {
    for (Thread& t : x_threads)
      for (Open& o : t.open) visit(o.around.region);
  }
  // Of open operators.
  void each_label(auto&& visit) const {
    for (const Thread& t : x_threads)
      for (const Open& o : t.open) visit(o.label);
  }
  // g_scope_trie has another generation: open operators have nodes of it. What is known of labels is
  // forgotten.
  void next_generation();
  // A new store has its own strings.
  void forget_string_ids() {
    ++x_generation;
    x_inputs.clear();
  }

 private:
  struct Open {
    uint64_t id = 0;
    int64_t start = 0;
    uint64_t sequence = 0;        // torch's + 1; 0: none
    uint64_t forward_thread = 0;  // torch's number; 0: no node of backward
    Around around;
    uint32_t label = 0, path = 0, instance = 0, parent = 0;
    uint32_t forward = 0;  // instance of the operator that made this node; 0: none, or not known
    uint32_t frame = 0;    // LaunchOrigin::frame
    uint32_t inputs = 0;   // number of operator_inputs; 0: not asked for
    bool backward = false;
  };
  struct Thread {
    std::vector<Open> open;
    // Of the next operator.
    uint64_t next_forward_thread = 0;
    uint32_t next_frame = 0, next_inputs = 0;
  };
  // What a label says of an operator.
  struct Named {
    bool is_backward = false;
    uint8_t scope = 0;
    uint32_t name = 0;  // string ID
    uint64_t generation = 0;
  };
  // The last operator with a sequence number on a thread of torch.
  struct Forward {
    uint64_t sequence = 0, thread = 0;
    uint32_t instance = 0;
  };

  // String IDs of inputs.
  struct Inputs {
    uint32_t shapes = 0, types = 0;
  };

  Named& named(uint32_t label);
  const Inputs& inputs(Store& store, uint32_t number);
  uint32_t name_id(Store& store, uint32_t label);
  Forward& forward_of(uint64_t thread, uint64_t sequence);
  Thread& thread(uint32_t slot);
  void write(Store& store, const Texts& texts, const Open& open, uint32_t tid, int64_t end, bool is_open);

  Losses& x_losses;
  std::vector<Thread> x_threads;   // by slot
  std::vector<Forward> x_forward;  // direct-mapped
  size_t x_forward_size;
  std::unordered_map<uint32_t, Named> x_named;    // by label
  std::unordered_map<uint32_t, Inputs> x_inputs;  // by number
  uint32_t x_instances = 0;
  uint64_t x_generation = 1;
};

}  // namespace cuptiprof
