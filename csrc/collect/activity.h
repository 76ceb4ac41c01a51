// What is switched on in CUPTI on our behalf: activity kinds, buffers, callbacks. One per process.
//
// Life of a session:
//   1. attach: subscribe (fails when another tool holds CUPTI), thread IDs, timestamps, buffer callbacks
//   2. enable: activity kinds, then the callbacks of calls that give the GPU work
//   3. disable: the reverse; host-side kinds first, so that our own calls leave no records; then what runs is
//      waited for, while its kinds are on
//   4. complete: synchronise every context that was used, flush, wait until records and launches agree
//   5. detach: unsubscribe
//   6. finalize, only when asked for: CUPTI leaves the process
// 1 to 3 and 5 are in activity.cpp, 4 and 6 in completion.cpp, callbacks at launches in launch_callbacks.cpp,
// those of CUDA graphs in graph_callbacks.cpp, those for buffers in buffer_callbacks.cpp.
#pragma once
#include <cupti_activity.h>
#include <cupti_callbacks.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collect/buffers/buffer_pool.h"
#include "collect/buffers/buffer_watch.h"
#include "collect/setup/departure.h"
#include "collect/setup/settings.h"
#include "cupti/captures.h"
#include "cupti/subscriber_calls.h"
#include "launch/observers.h"
#include "store/losses.h"
#include "threads/thread_slots.h"

namespace cuptiprof {

struct Api;
class Decoder;

struct ActivityOptions {
  std::vector<CUpti_ActivityKind> kinds;
  CuptiSettings settings;       // latency timestamps cost time on every launch
  bool all_api_calls = false;   // those too that ask and do nothing, a thousand times a step
  bool profiler_calls = false;  // cudaProfilerStart/Stop open and close the window
  // A callback at each launch counts it and joins its work to a region. False: the least a session can cost.
  bool follows_launches = true;
  Sharing sharing = Sharing::kJoins;
  size_t buffer_bytes = 0;  // of one activity buffer
  size_t buffer_count = 0;

  bool collects(CUpti_ActivityKind kind) const {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  }
  bool collects_kernels() const {
    return collects(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) || collects(CUPTI_ACTIVITY_KIND_KERNEL);
  }
  // Work of CUDA graphs comes node by node.
  bool records_graph_nodes() const {
    return !collects(CUPTI_ACTIVITY_KIND_GRAPH_TRACE) &&
           (collects_kernels() || collects(CUPTI_ACTIVITY_KIND_MEMCPY) ||
            collects(CUPTI_ACTIVITY_KIND_MEMSET));
  }
  bool operator==(const ActivityOptions&) const = default;
};

class Activity {
 public:
  // CUPTI may call back until the process ends, so there is one, and it is never destroyed.
  static Activity& instance();

  BufferPool& pool() { return x_pool; }
  Losses& losses() { return x_losses; }

  // Throws Error and leaves nothing behind.
  void attach(std::shared_ptr<const Api> api, ActivityOptions options);
  void enable();
  // `captures`, here and below: until when streams that are being captured in other threads are waited for.
  // `waits`: for what the GPU still has to do; else records of that come late, or never.
  void disable(Deadline captures, bool waits = true) noexcept;
  void detach() noexcept;
  // While nothing is attached: takes CUPTI out of the process (cupti/detach.h). Throws Error.
  void finalize(const Api& api);
  // In a forked child: CUPTI is the parent's, its callbacks are not heard any more.
  void leave_to_parent() noexcept { x_attached.store(false); }

  // Who is told of launches and regions as they happen, in place of those before. False: a thread is still
  // inside an old observer (its launch hangs), which must therefore live on.
  bool observe(const Observers& who) noexcept;

  // A living thread is in a launch that this observer counts.
  static bool is_inside(const LaunchObserver* observer) noexcept;

  // Waits for the GPU, flushes, and waits until every launch seen has its record, or none came for
  // `timeout_ms`.
  void complete(Decoder& decoder, int timeout_ms, Deadline captures);

  // Kernel launches seen since attach, graph launches and captures not counted.
  uint64_t launches() const noexcept;
  // The same when complete() was done with: what losses() were reckoned with. A callback that was on its way
  // then, on another thread, counts its launch later; it is of no session.
  uint64_t launches_at_completion() const noexcept { return x_launches_at_completion; }
  // CUDA graphs are followed, so that their work knows where it was captured.
  bool follows_nodes() const noexcept;
  uint64_t kernels_lost_in_pool() const noexcept { return x_kernels_lost.load(std::memory_order_relaxed); }
  // The calling thread's context, else the only one that work was launched in; null: none, or several.
  CUcontext current_context() const noexcept;
  // Contexts that work was launched in since attach.
  std::vector<CUcontext> contexts() const;
  // The decoder flushed: looks whether CUPTI still asks us for buffers.
  void watch_buffers() noexcept;
  // What a result of the session should say, for people.
  std::vector<std::string> notes() const;
  // CUDA was initialised before the session began.
  bool cuda_was_up() const noexcept { return x_cuda_was_up; }
  // How CUPTI is asked while a session is attached.
  SubscriberCalls calls() const noexcept {
    return {*x_api.load(std::memory_order_acquire), x_shared.load(std::memory_order_acquire)};
  }
  bool window_open() const noexcept { return x_enabled.load(std::memory_order_relaxed); }

 private:
  Activity();

  static void CUPTIAPI on_buffer_requested(uint8_t** buffer, size_t* size, size_t* max_records);
  static void CUPTIAPI on_shared_request(uint8_t** buffer, size_t* size, size_t* max_records, void*);
  static void CUPTIAPI on_shared_complete(uint8_t* buffer, size_t size, size_t valid, void*);
  CUptiResult register_buffers() noexcept;
  static void CUPTIAPI on_buffer_completed(CUcontext, uint32_t, uint8_t* buffer, size_t size, size_t valid);
  static void CUPTIAPI on_callback(void* user, CUpti_CallbackDomain, CUpti_CallbackId, const void* data);

  void on_driver_call(CUpti_CallbackId, const CUpti_CallbackData& call) noexcept;
  bool launch_enters(ThreadSlot& slot, CUpti_CallbackId, const CUpti_CallbackData& call, uint64_t task,
                     uint32_t frame) noexcept;
  void launch_goes_beside(ThreadSlot& slot, CUcontext context) noexcept;
  void launch_leaves(ThreadSlot& slot, CUpti_CallbackId, const CUpti_CallbackData& call,
                     bool captured) noexcept;
  template <typename What>
  void tell_observer(What what) noexcept;
  void on_resource(CUpti_CallbackId, const CUpti_ResourceData& data) noexcept;
  void on_graph_changed(CUpti_CallbackId, const CUpti_GraphData* described) noexcept;
  void graph_launched(ThreadSlot& slot, const CUpti_CallbackData& call) noexcept;
  void executable_updated(const CUpti_CallbackData& call) noexcept;
  uint64_t node_id(CUgraphNode node) const noexcept;
  void follow_nodes();
  void on_unload_call(CUpti_CallbackId, const CUpti_CallbackData& call) noexcept;
  static void modules_go() noexcept;
  void note_context(CUcontext context) noexcept;
  void set_callbacks(bool on);
  // False: the library does not know it.
  bool enable_callback(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, bool on);
  void set_kinds(bool on, bool throwing);
  bool synchronize_contexts(Deadline captures) noexcept;
  bool reconciles() const;
  // Waits and flushes until the decoder has what was launched. Throws Error when a flush fails.
  void bring_home(Decoder& decoder, int timeout_ms, Deadline captures);
  void count_missing(const Decoder& decoder) noexcept;
  void take_back_buffers() noexcept;
  std::string missing_buffers() const;
  void open_window() noexcept;
  bool close_window(Deadline captures, bool waits = true) noexcept;
  void leave_departed() noexcept;
  void count_discarded(uint8_t* buffer, size_t valid) noexcept;
  uint64_t records_in(uint8_t* buffer, size_t valid) const noexcept;

  std::shared_ptr<const Api> x_owner;
  std::atomic<const Api*> x_api{
      nullptr};  // what callbacks use; set as long as the process holds a subscription
  ActivityOptions x_options;
  // The same for callbacks: one of an earlier subscription may still be on its way when the next one is made.
  // What it points at lives as long as the process.
  std::atomic<const ActivityOptions*> x_options_seen{nullptr};
  CUpti_SubscriberHandle x_subscriber = nullptr;
  std::atomic<CUpti_SubscriberHandle> x_shared{nullptr};  // the same, where it is one of several
  std::atomic<LaunchObserver*> x_launch_observer{nullptr};
  std::atomic<bool> x_observed{false};  // counters are armed: launch callbacks stay on through pauses
  std::atomic<bool> x_attached{false};
  std::atomic<bool> x_enabled{false};
  std::atomic<bool> x_follows_nodes{false};
  std::atomic<bool> x_window_wanted{false};  // between cudaProfilerStart and cudaProfilerStop
  std::atomic<bool> x_held{false};           // by the control path: such calls do not switch anything on
  std::atomic<bool> x_closing{false};        // a thread is in close_window()
  SettingsGuard x_settings;
  bool x_cuda_was_up = false;
  Departure x_departure;
  std::atomic<bool> x_graphs{false};  // CUDA graphs were instantiated or launched in this process
  BufferPool x_pool;
  BufferWatch x_watch;
  std::atomic<int64_t> x_returned_at{0};  // when the last buffer of ours came back
  int64_t x_attached_at = 0;
  Losses x_losses;
  std::atomic<uint64_t> x_kernels_lost{0};
  std::atomic<uint64_t> x_graph_work_lost{0};  // in buffers for which there was no room
  std::atomic<uint64_t> x_waits_left_out{0};   // for the GPU, since a stream was being captured
  uint64_t x_left_over = 0;                    // records that an earlier session left behind
  uint64_t x_launches_before = 0, x_launches_at_completion = 0;
  static constexpr size_t kMaxContexts = 256;
  std::array<std::atomic<CUcontext>, kMaxContexts> x_contexts{};
};

}  // namespace cuptiprof
