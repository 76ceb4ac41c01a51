// One slot per thread that opens a region or launches GPU work: its event ring and its launch counters.
//
// Slots are process-wide and reused; the memory for all rings is reserved once (address space, not memory),
// so that a CUPTI callback can claim a slot without allocating. The owning thread writes events, the decoder
// takes them out; every other field says whose it is.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/spsc_ring.h"
#include "threads/forward_modules.h"
#include "threads/launch_scopes.h"
#include "threads/open_operators.h"
#include "threads/open_regions.h"

namespace cuptiprof {

enum class EventKind : uint32_t {
  kEnter,           // id = region name, metadata = owned pointer or null
  kExit,            // region = what enter_region or adopt_region returned, here or on another thread
  kLaunch,          // id = correlation ID of a call that gives the GPU work
  kHandOver,        // id = number of a token: it stands for the innermost region here and now (hand_over.h)
  kAdopt,           // id = number of a token: work of this task belongs to its region, until a kExit
  kBackwardBegins,  // this thread enters torch's autograd engine; id 1: which tells its threads whose work is
  kBackwardEnds,    // and leaves it
  kWorksFor,        // this autograd thread: for slot id - 1 from now on; id 0: nobody says
  kRangeStart,      // id = label, task = number of the range, metadata: an NVTX start/end range begins
  kRangeEnd,        // task = number of the range, on whatever thread
  kMark,            // id = label, metadata: an NVTX mark
  kStep,            // id = number of the training step that begins, from 0
  // PyTorch's operators (regions/operator_tracker.h).
  kOperatorDetail,  // of the next one on this thread: task = its forward thread, object = its module, id =
                    // number of its inputs
  kOperatorEnter,   // id = label, object = torch's sequence number + 1
  kOperatorExit,    // region = what its entry has (region_id), here or on another thread
  // CUDA graphs (graphs/graph_tracker.h). object = node's ID or executable graph's handle.
  kNodeOrigin,           // what else was open where the next node is created
  kNodeCreated,          // captured here and now, or added by hand
  kNodeCloned,           // task = ID of the node it is a copy of, or was updated from; id = type of the node
  kNodeDestroyed,        //
  kExecutableBegins,     // clones that follow on this thread belong to the executable graph that is made
  kExecutableCreated,    //
  kExecutableDestroyed,  //
  kExecutableChanged,    // updated, from nobody knows which nodes
  kGraphLaunched,        // id = correlation ID
};

class LaunchObserver;
struct RegionMetadata;

// What else is known of a launch.
struct LaunchOrigin {
  uint32_t scopes = 0;  // node of g_scope_trie: open scopes of the level "launch"
  uint32_t frame = 0;   // as g_frame_source gave it

  bool operator==(const LaunchOrigin&) const = default;
};

struct Event {
  int64_t stamp;  // read_stamp()
  uint64_t task;  // running contextvars.Context; 0: the thread's outermost
  union {
    RegionMetadata* metadata;  // kEnter, kRangeStart, kMark: freed by whoever takes the event out
    uint64_t region;           // kExit, kOperatorExit
    LaunchOrigin origin;       // kLaunch
    uint64_t object;           // of graphs; kOperatorEnter
  };
  uint32_t id;
  EventKind kind;
};
static_assert(sizeof(Event) == 32);

enum class SlotState : uint32_t {
  kFree,
  kInUse,        // a living thread's
  kThreadEnded,  // the decoder empties its ring, then frees it (recycle_slot)
};

struct ThreadSlot {
  [[no_unique_address]] SpscRing<Event> ring;
  // Written by the owning thread only, and what a region touches: on the ring's last cache line.
  uint32_t open_regions = 0;  // entered with an event and not yet left: so many slots stay reserved for exits
  uint64_t next_wake = 0;     // ring position at which the decoder is woken next
  uint32_t index = 0;         // of this slot
  std::atomic<uint32_t> left_elsewhere{0};  // of open_regions: their exits came on other threads
  std::atomic<bool> is_worker{false};       // one of torch's autograd threads (by name)
  // What a launch touches beside.
  alignas(kCacheLine) std::atomic<uint64_t> launches{0};  // those that execute (not captured into a graph)
  uint32_t nodes_created = 0;    // graph nodes created since the running call was entered; kInstantiating
  std::atomic<uint32_t> tid{0};  // thread ID to show
  // While counters are armed.
  std::atomic<LaunchObserver*> counted_by{nullptr};  // who counts the running launch and is told of its exit
  std::atomic<const void*> launching{nullptr};       // context of the running launch, where nobody counts it
  uint32_t counted_regions = 0;                      // bit i: entry i of `open` is counted
  std::atomic<bool> observing{false};                // inside an observer: it must not go away
  OpenRegions open;
  LaunchScopes scopes;
  OpenOperators operators;
  std::atomic<uint64_t> torch_thread{0};   // torch's own number of this thread; 0: it ran no operator yet
  std::atomic<uint32_t> in_backward{0};    // calls of torch's autograd engine this thread is inside of
  std::atomic<uint64_t> backward_task{0};  // in which task
  std::atomic<bool> marked_caller{false};  // torch's engine tells its threads so (backward_caller.h)
  uint64_t works_for = 0;                  // what the last kWorksFor said, and in which session
  std::atomic<uint32_t> claims{0};         // how often the slot was given to a thread
  std::atomic<SlotState> state{SlotState::kFree};
};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
static_assert(offsetof(ThreadSlot, is_worker) < 2 * kCacheLine &&
              offsetof(ThreadSlot, launches) == 2 * kCacheLine);
#pragma GCC diagnostic pop

// In nodes_created: the running call makes an executable graph, whose nodes are copies.
inline constexpr uint32_t kInstantiating = 1u << 31;

inline constexpr std::string_view kAutogradThread = "pt_autograd";  // what torch's thread names begin with
inline constexpr uint32_t kRingEvents = 32768;                      // 1 MiB a thread, touched as far as used
inline constexpr uint32_t kWakeEvents = kRingEvents / 4;            // so many new ones wake the decoder
inline constexpr uint32_t kMaxThreads = 1024;

// Reserves the rings; called before the first session starts. Throws Error when the address range cannot be
// had.
void reserve_thread_slots();

// The calling thread's slot, claimed at the first call; null when all are taken (events are then lost and
// counted). Neither locks nor allocates: launch callbacks call it.
ThreadSlot* this_thread_slot() noexcept;
ThreadSlot& thread_slot(uint32_t index) noexcept;
// One past the highest slot ever used.
uint32_t thread_slot_count() noexcept;

// A region is known by the event that opened it: slot and position in its ring, the same for whoever wrote it
// and whoever reads it. Never 0, and never used again.
inline constexpr uint32_t kRegionSlotShift = 48;  // positions have room for 2^48 events a slot
inline uint64_t region_id(const ThreadSlot& slot, uint64_t position) noexcept {
  return uint64_t{slot.index + 1} << kRegionSlotShift | (position & ((uint64_t{1} << kRegionSlotShift) - 1));
}
inline uint32_t slot_of_region(uint64_t id) noexcept {
  return static_cast<uint32_t>(id >> kRegionSlotShift) - 1;
}

inline uint64_t position_of_region(uint64_t id) noexcept {
  return id & ((uint64_t{1} << kRegionSlotShift) - 1);
}

// Decoder thread only: a slot whose thread ended and whose ring is empty may serve another thread.
void recycle_slot(ThreadSlot& slot) noexcept;

// Launches of threads that have no slot, and graph nodes the calling thread created since its running call
// was entered, where it has none.
inline std::atomic<uint64_t> g_slotless_launches{0};
uint32_t& slotless_nodes() noexcept;

// The ID under which the calling thread appears in results, instead of its system thread ID (a replay uses
// the recorded ones). 0: back to its own.
void set_thread_id(uint32_t tid) noexcept;

// Number of the training step that runs + 1; 0: none was marked.
inline std::atomic<uint32_t> g_running_step{0};

// Identity of the running asyncio task or contextvars.Context on the calling thread; set by the bindings. May
// be called without the GIL, in a CUPTI callback.
using TaskKey = uint64_t (*)();
inline std::atomic<TaskKey> g_task_key{nullptr};

// Which line of the program the calling thread is at, as a number from 1; 0: none, or it is not asked for.
// Set by the bindings; called in a CUPTI callback, without the GIL.
using FrameSource = uint32_t (*)() noexcept;
inline std::atomic<FrameSource> g_frame_source{nullptr};
// The same, which of PyTorch's modules runs on the calling thread: its number in g_module_table. For
// operators.
inline std::atomic<FrameSource> g_module_source{nullptr};

// Open operators are part of a launch's scopes: those of the level "launch", for which there are no events.
inline std::atomic<bool> g_operators_are_scopes{false};

// What is open on the calling thread, whose slot this is, beside regions.
inline LaunchOrigin launch_origin(ThreadSlot& slot) noexcept {
  const FrameSource frame = g_frame_source.load(std::memory_order_relaxed);
  uint32_t scopes = slot.scopes.node();
  if (g_operators_are_scopes.load(std::memory_order_relaxed)) scopes = slot.operators.node(scopes);
  uint32_t at = frame ? frame() : 0;
  if (g_module_source.load(std::memory_order_relaxed)) at = of_node(at, slot.operators.node_module());
  return {scopes, at};
}

}  // namespace cuptiprof
