#include "collect/regions/external_correlation.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "collect/regions/regions.h"
#include "cupti/api.h"
#include "cupti/call.h"
#include "cupti/cbids.h"
#include "store/losses.h"

namespace cuptiprof {
namespace {

constexpr size_t kWindow = 1u << 16;
constexpr size_t kMaxChanges = 1u << 16;

// Who to push to while a session attributes in this way, and who was last pushed to: a region may be left
// after the session.
std::atomic<const Api*> g_push_to{nullptr}, g_pushed_to{nullptr};

}  // namespace

void push_region_id(ThreadSlot& slot) noexcept {
  const Api* api = g_push_to.load(std::memory_order_acquire);
  if (!api) return;
  const uint64_t id = region_id(slot, slot.ring.pushed() - 1);
  if (api->cuptiActivityPushExternalCorrelationId(kRegionIdKind, id) == CUPTI_SUCCESS)
    ++slot.external_depth;
  else
    count(g_region_overflow);
}

void pop_region_id(ThreadSlot& slot) noexcept {
  const Api* api = g_pushed_to.load(std::memory_order_acquire);
  uint64_t popped = 0;
  if (api) api->cuptiActivityPopExternalCorrelationId(kRegionIdKind, &popped);
  --slot.external_depth;
}

void enable_external_correlation(const Api& a, bool all_calls) {
  if (!a.cuptiActivityPushExternalCorrelationId || !a.cuptiActivityPopExternalCorrelationId)
    throw Error(ErrorKind::kSession, "this libcupti has no external correlation",
                "attribute regions by launch callbacks");
  check(a, a.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION), "cuptiActivityEnable",
        "external correlation");
  if (!all_calls) {
    if (!a.cuptiActivityEnableDriverApi) {  // before CUDA 12.5: every call, and the decoder keeps none
      check(a, a.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER), "cuptiActivityEnable", "driver calls");
    } else {
      for (const CUpti_CallbackId cbid : driver_gpu_work_cbids()) {
        const CUptiResult rc = a.cuptiActivityEnableDriverApi(cbid, 1);
        // A library older than the headers does not know the newest calls; it cannot make them either.
        if (rc != CUPTI_SUCCESS && rc != CUPTI_ERROR_INVALID_PARAMETER)
          check(a, rc, "cuptiActivityEnableDriverApi", "callback ID " + std::to_string(cbid));
      }
    }
  }
  g_pushed_to.store(&a, std::memory_order_release);
  g_push_to.store(&a, std::memory_order_release);
  set_region_mode(kRegionIds, true);
}

void disable_external_correlation(const Api& a, bool all_calls) noexcept {
  set_region_mode(kRegionIds, false);
  g_push_to.store(nullptr, std::memory_order_release);
  if (!all_calls) {
    if (a.cuptiActivityEnableDriverApi)
      for (const CUpti_CallbackId cbid : driver_gpu_work_cbids()) a.cuptiActivityEnableDriverApi(cbid, 0);
    else
      a.cuptiActivityDisable(CUPTI_ACTIVITY_KIND_DRIVER);
  }
  a.cuptiActivityDisable(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
}

void forget_external_stacks() noexcept { g_pushed_to.store(nullptr, std::memory_order_release); }

void RegionWindow::enable() {
  x_entries.resize(kWindow);
  for (uint32_t i = 0; i < kMaxThreads; ++i) x_began_at.push_back(thread_slot(i).ring.popped());
}

bool RegionWindow::is_of_session(uint64_t id) const {
  const uint32_t slot = slot_of_region(id);
  return slot < x_began_at.size() && position_of_region(id) >= x_began_at[slot];
}

// Counted from where the session begins, and apart by thread: a few threads do not meet for a long time.
size_t RegionWindow::index_of(uint64_t id) const {
  const uint32_t slot = slot_of_region(id);
  return (position_of_region(id) - x_began_at[slot] + uint64_t{slot} * (kWindow / 8)) & (kWindow - 1);
}

void RegionWindow::put(uint64_t id, const CallSite& site) { x_entries[index_of(id)] = {id, site}; }

const CallSite* RegionWindow::find(uint64_t id) const {
  if (slot_of_region(id) >= x_began_at.size()) return nullptr;
  const Entry& e = x_entries[index_of(id)];
  return e.id == id ? &e.site : nullptr;
}

void RegionWindow::inherits_from(int64_t time, const CallSite& site) {
  const CallSite last = x_changes.empty() ? CallSite{} : x_changes.back().site;
  if (last.instance == site.instance) return;
  if (x_changes.size() >= kMaxChanges) x_changes.pop_front();
  x_changes.push_back({time, site});
}

CallSite RegionWindow::inherited_at(int64_t time) const {
  const auto after = std::upper_bound(x_changes.begin(), x_changes.end(), time,
                                      [](int64_t t, const Change& c) { return t < c.time; });
  return after == x_changes.begin() ? CallSite{} : std::prev(after)->site;
}

uint32_t WaitingRecords::correlation_of(const CUpti_Activity* record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_KERNEL: {
      const auto& k = *reinterpret_cast<const CUpti_ActivityKernel10*>(record);
      // A kernel launched by a kernel has no call of ours.
      return k.launchType == CUPTI_ACTIVITY_LAUNCH_TYPE_CBL_COMMANDLIST ? 0 : k.correlationId;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return reinterpret_cast<const CUpti_ActivityMemcpy6*>(record)->correlationId;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return reinterpret_cast<const CUpti_ActivityMemcpyPtoP4*>(record)->correlationId;
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return reinterpret_cast<const CUpti_ActivityMemset4*>(record)->correlationId;
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return reinterpret_cast<const CUpti_ActivityGraphTrace2*>(record)->correlationId;
    default:
      return 0;
  }
}

bool WaitingRecords::hold(const CUpti_Activity* record, const uint8_t* buffer_end) {
  if (x_records.size() >= kMaxRecords) return false;
  Record& copy = x_records.emplace_back();
  const auto* from = reinterpret_cast<const uint8_t*>(record);
  std::memcpy(copy.bytes, from, std::min<size_t>(sizeof copy.bytes, static_cast<size_t>(buffer_end - from)));
  return true;
}

}  // namespace cuptiprof
