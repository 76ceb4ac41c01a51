// Activity: making sure that what was launched has reached the decoder, before it is taken, before its names
// go away, and before CUPTI does.
#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.h"
#include "collect/activity.h"
#include "collect/records/decoder.h"
#include "collect/regions/regions.h"
#include "collect/regions/scope_labels.h"
#include "cupti/api.h"
#include "cupti/call.h"
#include "cupti/captures.h"
#include "cupti/detach.h"
#include "threads/frame_tree.h"

namespace cuptiprof {
void Activity::note_context(CUcontext context) noexcept {
  if (!context) return;
  for (auto& c : x_contexts) {
    CUcontext known = c.load(std::memory_order_relaxed);
    if (known == context) return;
    if (!known && c.compare_exchange_strong(known, context, std::memory_order_relaxed)) return;
    if (known == context) return;
  }
}

CUcontext Activity::current_context() const noexcept {
  const Api* a = x_api.load(std::memory_order_acquire);
  CUcontext current = nullptr;
  if (a && a->cuCtxGetCurrent && a->cuCtxGetCurrent(&current) == CUDA_SUCCESS && current) return current;
  for (const auto& c : x_contexts) {
    CUcontext known = c.load(std::memory_order_relaxed);
    if (known && current) return nullptr;  // one of several would be a guess
    if (known) current = known;
  }
  return current;
}

std::vector<CUcontext> Activity::contexts() const {
  std::vector<CUcontext> out;
  for (const auto& c : x_contexts)
    if (CUcontext known = c.load(std::memory_order_relaxed)) out.push_back(known);
  return out;
}

// False: a stream is being captured somewhere, and waiting would have broken the capture. `captures`: until
// when those of other threads may end.
bool Activity::synchronize_contexts(Deadline captures) noexcept {
  const Api& a = *x_api.load(std::memory_order_acquire);
  if (!a.cuCtxPushCurrent_v2 || !a.cuCtxSynchronize || !a.cuCtxPopCurrent_v2) return true;
  const NoCapture none(captures);
  if (!none) return false;
  bool all = true;
  for (auto& c : x_contexts) {
    CUcontext context = c.load(std::memory_order_relaxed);
    if (!context || a.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS) continue;
    // An error of the wait is the program's own (a failed kernel); its next call reports it.
    if (Captures::is_conflicting(a))
      all = false;
    else
      a.cuCtxSynchronize();
    CUcontext popped;
    a.cuCtxPopCurrent_v2(&popped);
  }
  return all;
}

uint64_t Activity::launches() const noexcept {
  uint64_t n = 0;
  for (uint32_t i = 0; i < thread_slot_count(); ++i)
    n += thread_slot(i).launches.load(std::memory_order_relaxed);
  n += g_slotless_launches.load(std::memory_order_relaxed);
  return n - x_launches_before;
}

bool Activity::reconciles() const { return x_options.collects_kernels(); }

void Activity::complete(Decoder& decoder, int timeout_ms, Deadline captures) {
  try {
    bring_home(decoder, timeout_ms, captures);
  } catch (...) {
    count_missing(decoder);
    throw;
  }
  count_missing(decoder);
}

void Activity::bring_home(Decoder& decoder, int timeout_ms, Deadline captures) {
  const Api& a = *x_owner;
  x_departure.look(a, x_subscriber);
  if (x_departure.happened()) return decoder.fence();  // nothing comes any more
  using Clock = std::chrono::steady_clock;
  const auto patience = std::chrono::milliseconds(timeout_ms);
  if (!x_options.follows_launches) note_context(current_context());
  const bool waited = synchronize_contexts(captures);
  if (!waited) count(x_waits_left_out);
  // Launches that come later, from other threads, are not waited for: that could go on for ever.
  // Without kernel records there is nothing to reconcile launches with.
  const uint64_t wanted = reconciles() ? launches() : 0;
  uint64_t wanted_of_graphs = 0;
  auto missing = [&] {
    return wanted > decoder.kernels_received() + kernels_lost_in_pool() ||
           wanted_of_graphs > decoder.graph_counts().received + x_graph_work_lost.load();
  };
  // Plain flushes first: a forced one also takes kernels that still run, with no end, and they never come
  // again.
  uint64_t decoded = decoder.wait_for_buffers(0, 0);
  bool first = true;
  // A capture that stayed open until its deadline was time for the records too.
  for (auto deadline = waited ? Clock::now() + patience : std::max(captures, Clock::now() + patience / 10);
       ;) {
    check(a, a.cuptiActivityFlushAll(0), "cuptiActivityFlushAll");
    decoder.fence();
    if (std::exchange(first, false)) wanted_of_graphs = decoder.graph_counts().work;
    if (!missing() || Clock::now() >= deadline) break;
    const uint64_t now_decoded = decoder.wait_for_buffers(decoded, timeout_ms / 10);
    if (now_decoded > decoded) deadline = Clock::now() + patience;  // they still come
    decoded = now_decoded;
  }
  // A plain flush withholds a buffer for one unfinished record in it. While nothing is collected no record
  // can be on its way that would finish later, so that the last word is always a forced one.
  if (!missing() && window_open()) return;
  const uint64_t requests = x_pool.requests();
  check(a, a.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll");
  x_losses.withheld_buffers.store(x_pool.held_since_before(requests));
  decoder.fence();
}

void Activity::count_missing(const Decoder& decoder) noexcept {
  size_t dropped = 0;
  if (x_departure.happened())
    x_losses.departed.store(1);
  else if (calls().dropped(&dropped) == CUPTI_SUCCESS)
    count(x_losses.cupti_dropped, dropped);
  x_launches_at_completion = launches();
  const uint64_t seen = reconciles() ? x_launches_at_completion : 0;
  const uint64_t received = decoder.kernels_received() + kernels_lost_in_pool();
  x_losses.unreconciled_launches.store(seen > received ? seen - received : 0);
  const GraphTracker::Counts graphs = decoder.graph_counts();
  const uint64_t of_graphs = graphs.received + x_graph_work_lost.load();
  x_losses.unreconciled_graph_work.store(graphs.work > of_graphs ? graphs.work - of_graphs : 0);
  x_losses.region_overflow.store(g_region_overflow.load());
  x_losses.unfollowed_threads.store(g_beyond_slots.load());
  count(x_losses.texts_lost, g_labels_lost.exchange(0) + g_scopes_lost.exchange(0));
  x_losses.frames_lost.store(g_frames_lost.load());
  count(x_losses.metadata_dropped, g_metadata_dropped.exchange(0));
  count(x_losses.metadata_as_text, g_metadata_as_text.exchange(0));
}

std::vector<std::string> Activity::notes() const {
  std::vector<std::string> out;
  if (x_departure.happened())
    out.push_back(x_departure.text());
  else if (std::string text = missing_buffers(); !text.empty())
    out.push_back(std::move(text));
  if (x_losses.out_of_memory.load() != 0)
    out.push_back(
        "memory ran out and collection ended there; give a smaller budget=, or the process more memory");
  if (x_options.sharing == Sharing::kOffers && !calls().is_shared())
    out.push_back(
        "CUPTI was not shared: that takes CUDA 13.3, a driver of r610, and nobody who used it for himself "
        "before; until the session ended no other tool could subscribe");
  if (const uint64_t n = x_waits_left_out.load(); n != 0)
    out.push_back("a CUDA graph was being captured when the data were collected" +
                  (n > 1 ? " (" + std::to_string(n) + " times)" : std::string()) +
                  ": waiting for the GPU would have invalidated the capture, so what still ran then can be "
                  "missing; end captures before stop(), take() and step()");
  return out;
}

void Activity::finalize(const Api& api) {
  if (x_graphs.load())
    throw Error(
        ErrorKind::kSession,
        "this process made CUDA graphs: programs have crashed when CUPTI came back after it was taken "
        "out of one that had (pytorch issue 112507)",
        "stop() and detach() leave CUPTI idle; finalize=True is for processes without graphs");
  api.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);  // buffers it still holds come back now
  finalize_cupti(api);
}

}  // namespace cuptiprof
