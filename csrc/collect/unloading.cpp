// Activity: before the names go away that records point at. Launches showed them
// (collect/records/kernel_names.h), so nothing waits for the GPU here: a kernel may be waiting for one that
// this thread is yet to launch. What is complete is decoded before, since nobody knows the names of graph
// nodes captured before the session.
#include <utility>

#include "collect/activity.h"
#include "collect/records/kernel_names.h"
#include "cupti/api.h"
#include "cupti/cbids.h"

namespace cuptiprof {
namespace {

constexpr auto kUnloadPatience = std::chrono::milliseconds(250);

// The call on this thread that may take modules away.
struct Unloading {
  bool inside = false;
  bool done = false;  // what follows from it
  uint32_t correlation = 0;
};
thread_local Unloading t_unloading [[gnu::tls_model("initial-exec")]];

}  // namespace

void Activity::on_unload_call(CUpti_CallbackId cbid, const CUpti_CallbackData& call) noexcept {
  const bool entry = call.callbackSite == CUPTI_API_ENTER;
  t_unloading = {entry, false, call.correlationId};
  if (!entry) return;
  // Only the last release of a primary context takes anything away; CUPTI then says so (modules_go).
  if (is_primary_release(cbid)) return;
  // CUPTI lets its functions be called on the way into a driver call. The decoder needs nothing that this
  // thread can hold.
  x_api.load(std::memory_order_acquire)->cuptiActivityFlushAll(0);
  x_pool.wait_for_decoder(kUnloadPatience);
  modules_go();
}

void Activity::modules_go() noexcept {
  // By a call that we do not know: which records came before it cannot be told.
  if (!t_unloading.inside) return g_kernel_names.unloaded(0);
  if (!std::exchange(t_unloading.done, true)) g_kernel_names.unloaded(t_unloading.correlation);
}

}  // namespace cuptiprof
