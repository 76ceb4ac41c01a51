// Activity: buffers on their way to CUPTI and back.
#include <cstdio>
#include <string>

#include "base/clock.h"
#include "collect/activity.h"
#include "cupti/api.h"
#include "cupti/record_versions.h"
#include "threads/thread_slots.h"

namespace cuptiprof {
namespace {

struct Records {
  uint64_t all = 0, kernels = 0, of_graphs = 0;  // kernels: graph nodes not counted
};

Records count_records(const SubscriberCalls& calls, uint8_t* buffer, size_t valid) noexcept {
  CUpti_Activity* record = nullptr;
  Records n;
  while (calls.next_record(buffer, valid, &record) == CUPTI_SUCCESS) {
    ++n.all;
    const bool of_graph = graph_node_of(record) != 0;
    n.of_graphs += of_graph;
    n.kernels += !of_graph && is_kernel(record);
  }
  return n;
}

}  // namespace

void CUPTIAPI Activity::on_buffer_requested(uint8_t** buffer, size_t* size, size_t* max_records) {
  *max_records = 0;
  *buffer = instance().x_pool.acquire(size);
}

void CUPTIAPI Activity::on_buffer_completed(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  Activity& self = instance();
  if (!buffer) return;
  switch (self.x_pool.complete(buffer, valid)) {
    case Returned::kToDecoder:
      return self.x_returned_at.store(now_ns(), std::memory_order_relaxed);
    case Returned::kForeign:
      return count(self.x_losses.foreign_buffers);
    case Returned::kDiscard:
      self.count_discarded(buffer, valid);
      break;
    case Returned::kEarlierDiscard:
      count(self.x_losses.earlier_session, self.records_in(buffer, valid));
      break;
  }
  self.x_pool.release(buffer, valid);
}

void CUPTIAPI Activity::on_shared_request(uint8_t** buffer, size_t* size, size_t* max_records, void*) {
  on_buffer_requested(buffer, size, max_records);
}

void CUPTIAPI Activity::on_shared_complete(uint8_t* buffer, size_t size, size_t valid, void*) {
  on_buffer_completed(nullptr, 0, buffer, size, valid);
}

CUptiResult Activity::register_buffers() noexcept {
  const SubscriberCalls cupti = calls();
  if (!cupti.is_shared())
    return cupti.api().cuptiActivityRegisterCallbacks(&on_buffer_requested, &on_buffer_completed);
  return cupti.api().of_subscriber.cuptiActivityRegisterCallbacks_v2(cupti.handle(), &on_shared_request,
                                                                     &on_shared_complete);
}

void Activity::count_discarded(uint8_t* buffer, size_t valid) noexcept {
  const Records n = count_records(calls(), buffer, valid);
  count(x_losses.pool_exhausted, n.all);
  count(x_kernels_lost, n.kernels);
  count(x_graph_work_lost, n.of_graphs);
}

uint64_t Activity::records_in(uint8_t* buffer, size_t valid) const noexcept {
  return count_records(calls(), buffer, valid).all;
}

void Activity::watch_buffers() noexcept {
  if (window_open() && reconciles())
    x_watch.look(now_ns(), launches(), x_pool.requests(), x_pool.held_by_cupti());
}

// What is missing because others use the same CUPTI; empty: nothing.
std::string Activity::missing_buffers() const {
  const uint64_t withheld = x_losses.withheld_buffers.load(),
                 launches = x_losses.unreconciled_launches.load();
  // A launch or two of each thread can fall between a callback and its kind.
  if (withheld == 0 && launches <= 2 * uint64_t{thread_slot_count()}) return {};
  const int64_t taken = x_watch.taken_at(), returned = x_returned_at.load();
  char since[64] = "";
  if (const int64_t at = taken ? taken : returned; at > x_attached_at)
    std::snprintf(since, sizeof since, " since about %.3f s after the start",
                  static_cast<double>(at - x_attached_at) * 1e-9);
  std::string text = std::to_string(launches) + " kernel launches have no record";
  if (withheld) text += ", and " + std::to_string(withheld) + " activity buffers never came back";
  if (withheld || taken)
    return text + since +
           ": another client of CUPTI (torch.profiler, a monitor) registered its own buffers, which takes "
           "ours "
           "away; copies, calls and waits are missing with them. Run one at a time";
  return text +
         ": if another client of CUPTI ran beside this session (torch.profiler, a monitor), it may have "
         "switched "
         "kernel records off, for it and for us";
}

// Nothing of ours is switched on yet. What CUPTI still holds goes to those who gave it out: to another client
// through its own callbacks, which ours are about to replace; and what an earlier session of ours left there
// must not become rows of this one. A subscriber among several begins with buffers of its own, and a flush
// would take the others' unfinished records.
void Activity::take_back_buffers() noexcept {
  if (const SubscriberCalls cupti = calls(); !cupti.is_shared())
    cupti.api().cuptiActivityFlushAll(
        CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);  // refused where nobody ever asked for any
  x_left_over = 0;
  CompletedBuffer buffer;
  while (x_pool.take_completed(&buffer, 1) != 0) {
    x_left_over += records_in(buffer.data, buffer.valid_bytes);
    x_pool.release(buffer.data, buffer.valid_bytes);
  }
}

}  // namespace cuptiprof
