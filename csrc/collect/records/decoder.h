// The decoder thread: completed buffers and event rings in, table rows out. Never takes the GIL.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "collect/buffers/buffer_pool.h"
#include "collect/graphs/graph_tracker.h"
#include "collect/records/record_decoder.h"
#include "collect/regions/correlation_map.h"
#include "collect/regions/region_tracker.h"
#include "store/live_sums.h"
#include "store/store.h"

namespace cuptiprof {

class Decoder {
 public:
  struct Options {
    Keep keep = Keep::kLatest;
    size_t table_bytes = 0;                      // budget of the store
    size_t path_bytes = 1u << 20;                // for paths of regions
    size_t correlation_bytes = 0;                // for the correlation map
    BesideCalls beside;                          // what that keeps, too
    size_t graph_bytes = 0;                      // for nodes of CUDA graphs; 0: they are not followed
    GraphTracker::Recorded recorded;             // which work of graphs has records
    std::shared_ptr<const KernelFilter> filter;  // null: keep every kernel
    bool follows_launches = true;                // RecordDecoder::Options
    std::shared_ptr<LiveSums> live;              // told of every row; null: nobody watches
    bool ages_texts = false;                     // names that nothing has any more go: sessions without end
    std::function<void()> on_flush;              // called on the decoder thread after each of its flushes
  };

  Decoder(const SubscriberCalls& calls, BufferPool& pool, Losses& losses, Options options);
  ~Decoder();

  // Ends the thread after one last pass. Segments can still be fetched.
  void finish();

  // Runs `work` on the decoder thread after a full pass that began after this call, and waits for it:
  // everything that was completed before the call is then in the store. Control path only.
  void run(const std::function<void()>& work);
  void fence() {
    run([] {});
  }

  // Waits until a buffer was decoded after the first `seen` ones, or the time is over. Returns how many were,
  // ever.
  uint64_t wait_for_buffers(uint64_t seen, int timeout_ms);

  // The store, handed over; a new one takes its place. Rows of regions still open are written with end = now.
  std::shared_ptr<Store> take(int64_t now);
  // What was collected so far, what CUPTI can give back included, with rows of what is open at `now`;
  // collection goes on. Null: no memory for it.
  std::shared_ptr<Store> snapshot(int64_t now);
  // Drops what was collected so far (a warm-up).
  void discard();
  // Memory ran out: what comes from then on is counted, and nothing else.
  bool has_ended() const { return x_ended.load(std::memory_order_relaxed); }

  // keep="spill": the next full store; null after `timeout_ms`, or when the decoder ended.
  std::shared_ptr<Store> next_segment(int timeout_ms);

  uint64_t without_times() const { return x_records.without_times(); }
  uint64_t kernels_received() const { return x_records.kernels_received(); }
  GraphTracker::Counts graph_counts() const { return x_graphs ? x_graphs->counts() : GraphTracker::Counts{}; }
  // CPU time of its thread up to its last look at what came.
  int64_t cpu_ns() const noexcept;
  size_t live_bytes() const { return x_live_bytes.load(std::memory_order_relaxed); }

 private:
  void loop();
  void flush_if_due();
  void pass();
  void drain_rings();
  // Does it unless collection has ended; when memory runs out in it, collection ends.
  template <typename Work>
  void attempt(Work&& work) noexcept;
  std::unique_ptr<Store> new_store();
  void hand_over_full_store();
  void age_names();
  void swap_store(std::unique_ptr<Store> next);

  const Api& x_api;
  BufferPool& x_pool;
  Losses& x_losses;
  Options x_options;
  CorrelationMap x_calls;
  const std::unique_ptr<GraphTracker> x_graphs;
  const std::unique_ptr<OperatorTracker> x_operators;
  struct Regions {
    RegionTracker tracker;
    Regions* next = nullptr;  // in the list of those left alone
  };
  std::unique_ptr<Regions> x_regions_owner;
  RegionTracker& x_regions;
  std::shared_ptr<PageWarmer> x_warmer = std::make_shared<PageWarmer>();
  std::unique_ptr<Store> x_store;  // decoder thread only; null: memory ran out
  RecordDecoder x_records;
  std::vector<CompletedBuffer> x_completed;  // as many as there can be
  std::chrono::steady_clock::time_point x_flushed = std::chrono::steady_clock::now();
  std::chrono::milliseconds x_flush_period{0}, x_low_period{0};
  std::atomic<bool> x_ended{false};
  std::atomic<size_t> x_live_bytes{0};
  std::atomic<int64_t> x_cpu_ns{0};

  std::mutex x_mutex;  // guards the members below; never held over a CUPTI call
  std::condition_variable x_changed;
  std::vector<const std::function<void()>*> x_work;
  uint64_t x_work_done = 0;
  uint64_t x_work_given = 0;
  uint64_t x_buffers_decoded = 0;
  bool x_stop = false;
  std::vector<std::shared_ptr<Store>> x_segments;  // oldest first
  std::thread x_thread;
};

}  // namespace cuptiprof
