#include "sim/calls/run_work.h"

#include <algorithm>

#include "sim/activity/records.h"
#include "sim/activity/wanted_records.h"
#include "sim/counters/counting.h"

namespace sim {

uint32_t run_work(Work w, Recording recording, Placed& at) {
  Machine& m = Machine::get();
  auto& context = const_cast<Context&>(w.context);
  Stream& stream = m.stream(&context, w.stream);
  const bool given_times = w.op.flags & CUPTISIM_GPU_TIMES;
  const bool counted = w.op.kind == CUPTISIM_OP_KERNEL && counting();
  const uint64_t duration = given_times        ? w.op.gpu_end - w.op.gpu_start
                            : w.op.duration_ns ? w.op.duration_ns
                                               : kUsualDuration;
  if (given_times) {
    m.occupy(&context, stream, w.op.gpu_end);
    w.at = {w.op.gpu_start, w.op.gpu_end};
  }
  if (const auto run = counted ? run_counted(w, stream, duration) : std::nullopt) {
    w.at = run->at;
    if (run->result != CUDA_SUCCESS) return run->result;
  } else if (!given_times) {
    const bool serialised =
        w.op.kind == CUPTISIM_OP_KERNEL && kind_enabled(CUPTI_ACTIVITY_KIND_KERNEL, w.context);
    // What a profiler did on the way in has taken its time.
    const uint64_t given = counted ? std::max(w.call_time, m.now()) : w.call_time;
    w.at.start = m.schedule(&context, stream, given + m.launch_latency(), duration,
                            serialised ? Overlap::kNone : Overlap::kAllowed);
    w.at.end = w.at.start + duration;
    if (counted) count_kernel(w);
  } else if (counted) {
    count_kernel(w);
  }
  if (w.op.kind == CUPTISIM_OP_KERNEL && ranges_may_begin())
    context.recent.add({w.op, w.stream, w.call_time, w.at.start, w.at.end});
  auto& count = w.op.kind == CUPTISIM_OP_KERNEL   ? m.truth.kernels
                : w.op.kind == CUPTISIM_OP_MEMSET ? m.truth.memsets
                                                  : m.truth.memcpys;
  count.fetch_add(1, std::memory_order_relaxed);
  if (recording == Recording::kYes) emit_work_record(w);
  at = w.at;
  return CUDA_SUCCESS;
}

}  // namespace sim
