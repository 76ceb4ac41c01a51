// Every way to lose data has a counter here. Names are public: result.losses uses them.
#pragma once
#include <atomic>
#include <cstdint>

namespace cuptiprof {

#define CP_LOSSES(X)                                                                                         \
  X(pool_exhausted, "records CUPTI wrote to a discard buffer because every buffer was in use")               \
  X(earlier_session, "records of an earlier session that came during this one (not a loss of this one)")     \
  X(foreign_buffers, "activity buffers of another CUPTI client that came to us and were left alone")         \
  X(withheld_buffers, "activity buffers that CUPTI never gave back: their records are missing")              \
  X(out_of_memory, "records that came after memory had run out, which ends collection")                      \
  X(cupti_dropped, "records CUPTI itself dropped for want of a buffer")                                      \
  X(invalid_timestamps,                                                                                      \
    "records without times, or with times that cannot be; of GPU work the row stays, with start and end 0")  \
  X(budget_evicted, "rows left out or evicted to stay within the byte budget")                               \
  X(filter_rejected, "rows that the kernel filter did not select (not a loss)")                              \
  X(orphan_correlations, "records whose launch was not seen, so that region and thread are unknown")         \
  X(region_overflow, "region or launch events lost because a thread's ring was full")                        \
  X(texts_lost, "names, paths and metadata without room: \"(name lost)\", or as the region around them")     \
  X(metadata_dropped,                                                                                        \
    "keywords of regions whose values could not be written: flops= that is no number, say")                  \
  X(metadata_as_text,                                                                                        \
    "keywords of regions that are no str, number, bool or short list of them: written as text (not a loss)") \
  X(frames_lost, "launches whose Python line or stack found no room")                                        \
  X(configs_lost, "launch configurations without room: their grid is 0")                                     \
  X(captures_lost, "CUDA graph nodes without room: their work does not know where it was captured")          \
  X(unfollowed_threads, "launches and regions of threads beyond the 1,024 that are followed at once")        \
  X(allocator_overwritten,                                                                                   \
    "events of PyTorch's caching allocator that its history had no room for: the oldest ones")               \
  X(spill_dropped, "rows lost because the disk did not keep up or failed")                                   \
  X(unknown_records, "records of a kind this version does not know")                                         \
  X(uncounted, "launches, regions and samples chosen for counters that have no values; see metadata")        \
  X(sample_overflows, "times the hardware buffer of counter samples overflowed")                             \
  X(departed,                                                                                                \
    "1: CUPTI left the process (a fatal error, or another tool's cuptiFinalize) while the session "          \
    "collected")                                                                                             \
  X(unreconciled_launches, "kernel launches seen for which no record came")                                  \
  X(unreconciled_graph_work, "kernels, copies and sets of launched CUDA graphs for which no record came")

// Written by the decoder thread and, for a few, by CUPTI's threads; read by anyone. Reset when a session
// attaches.
struct Losses {
#define CP_LOSS(name, doc) std::atomic<uint64_t> name{0};
  CP_LOSSES(CP_LOSS)
#undef CP_LOSS
  void reset() noexcept {
#define CP_LOSS(name, doc) name.store(0, std::memory_order_relaxed);
    CP_LOSSES(CP_LOSS)
#undef CP_LOSS
  }
};

inline void count(std::atomic<uint64_t>& counter, uint64_t n = 1) noexcept {
  counter.fetch_add(n, std::memory_order_relaxed);
}

}  // namespace cuptiprof
