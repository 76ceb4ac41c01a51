#include "collect/graphs/graph_tracker.h"

namespace cuptiprof {
namespace {

// CUgraphNodeType.
constexpr uint32_t kKernelNode = 0, kMemcpyNode = 1, kMemsetNode = 2, kConditionalNode = 13;
// Records of what was destroyed so many periods ago have come.
constexpr uint32_t kPeriodsOnTheWay = 2;
constexpr size_t kMaxExecutables = 1u << 16;

void add(std::atomic<uint64_t>& counter, uint64_t n) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

}  // namespace

GraphTracker::GraphTracker(size_t max_bytes, Recorded recorded, Losses& losses)
    : x_recorded(recorded), x_losses(losses), x_sites(max_bytes) {}

bool GraphTracker::has_records(uint32_t node_type) const {
  switch (node_type) {
    case kKernelNode:
      return x_recorded.kernels;
    case kMemcpyNode:
      return x_recorded.memcpys;
    case kMemsetNode:
      return x_recorded.memsets;
    default:
      return false;
  }
}

CaptureSites::Node* GraphTracker::put(uint64_t id) {
  CaptureSites::Node* node = x_sites.put(id);
  if (!node) {
    make_room();
    node = x_sites.put(id);
    if (!node) count(x_losses.captures_lost);
  }
  return node;
}

uint32_t GraphTracker::site(const CaptureSite& at) {
  uint32_t site = x_sites.site(at);
  if (site != CaptureSites::kUnknown) return site;
  make_room();
  site = x_sites.site(at);
  if (site == CaptureSites::kUnknown) count(x_losses.captures_lost);
  return site;
}

// Looking through all nodes once a period at most: a table full of living ones stays full.
void GraphTracker::make_room() {
  if (x_made_room_in == x_period) return;
  x_made_room_in = x_period;
  const auto is_past = [this](uint32_t period) { return x_period - period >= kPeriodsOnTheWay; };
  x_sites.forget([&](const CaptureSites::Node& node) {
    if (node.gone_in != 0) return is_past(node.gone_in);
    const auto end = node.executable ? x_ended.find(node.executable) : x_ended.end();
    return end != x_ended.end() && is_past(end->second);
  });
  std::erase_if(x_ended, [&](const auto& end) { return is_past(end.second); });
}

// A copy is told of as created, too, before or after it is told of as a copy; that it is one counts.
void GraphTracker::created(uint64_t id, const CaptureSite& at) {
  const CaptureSites::Node* node = put(id);
  if (!node || node->origin != 0) return;
  const uint32_t where = site(at);
  x_sites.find(id)->site = where;  // it may have moved
}

void GraphTracker::cloned(uint32_t slot, const Event& e) {
  const auto begun = x_begun.find(slot);
  Executable* executable = begun == x_begun.end() ? nullptr : &begun->second;
  const bool is_update = !executable && x_last_launch != 0;
  CaptureSites::Node* node = put(e.object);
  if (is_update && node && node->origin != 0)
    x_sites.keep_earlier(*node, x_last_launch, x_period, kPeriodsOnTheWay);
  else if (is_update && node)
    node->since = x_last_launch;  // what it was before it was updated is not known
  if (executable && (!node || e.id == kConditionalNode)) executable->is_counted = false;
  if (!node) return;
  const CaptureSites::Node* original = x_sites.find(e.task);
  node->site = original ? original->site : CaptureSites::kUnknown;
  node->origin = e.task ? e.task : e.object;
  if (!executable) return;
  node->executable = executable->number;
  node->is_counted = has_records(e.id);
  ++executable->nodes;
  executable->work += node->is_counted;
}

void GraphTracker::begin(uint32_t slot) {
  Executable& executable = x_begun[slot];
  // The one before never came to be: its call failed.
  if (executable.nodes != 0) x_ended.emplace(executable.number, x_period);
  executable = {};
  executable.number = ++x_executables;
}

void GraphTracker::instantiated(uint32_t slot, uint64_t handle) {
  const auto begun = x_begun.find(slot);
  if (begun == x_begun.end()) return;  // it began before the session did
  const Executable executable = begun->second;
  x_begun.erase(begun);
  ended(handle);  // of the one before, whose end was not told of
  if (!executable.is_counted)
    x_sites.for_each([&](CaptureSites::Node& node) {
      if (node.executable == executable.number) node.is_counted = false;
    });
  if (x_by_handle.size() < kMaxExecutables) x_by_handle.emplace(handle, executable);
}

void GraphTracker::ended(uint64_t handle) {
  const auto found = x_by_handle.find(handle);
  if (found == x_by_handle.end()) return;
  if (found->second.nodes != 0) x_ended.emplace(found->second.number, x_period);
  x_by_handle.erase(found);
}

// An older CUPTI says that an executable graph was updated, not from which nodes.
void GraphTracker::changed(uint64_t handle) {
  const auto found = x_by_handle.find(handle);
  if (found == x_by_handle.end()) return;
  x_sites.for_each([&, number = found->second.number](CaptureSites::Node& node) {
    if (node.executable != number) return;
    if (x_last_launch != 0) x_sites.keep_earlier(node, x_last_launch, x_period, kPeriodsOnTheWay);
    node.site = CaptureSites::kUnknown;
  });
}

void GraphTracker::launched(const Event& e) {
  x_last_launch = e.id;
  add(x_launches, 1);
  const auto found = x_by_handle.find(e.object);
  if (found == x_by_handle.end() || !found->second.is_counted)
    add(x_unknown_launches, 1);
  else
    add(x_work, found->second.work);
}

void GraphTracker::apply(uint32_t slot, const Event& e) {
  switch (e.kind) {
    case EventKind::kNodeCloned:
      return cloned(slot, e);
    case EventKind::kNodeDestroyed:
      if (CaptureSites::Node* node = x_sites.find(e.object)) node->gone_in = x_period;
      return;
    case EventKind::kExecutableBegins:
      return begin(slot);
    case EventKind::kExecutableCreated:
      return instantiated(slot, e.object);
    case EventKind::kExecutableDestroyed:
      return ended(e.object);
    case EventKind::kExecutableChanged:
      return changed(e.object);
    case EventKind::kGraphLaunched:
      return launched(e);
    default:
      return;
  }
}

const CaptureSite* GraphTracker::received(uint64_t id, uint64_t source, uint32_t correlation) {
  const CaptureSites::Node* node = x_sites.find(id);
  if (node && node->is_counted) add(x_received, 1);
  uint32_t site = node ? x_sites.site_at(*node, correlation) : CaptureSites::kUnknown;
  // What the record itself says needs no history.
  if (source != 0 && (!node || node->origin != source)) {
    const CaptureSites::Node* other = x_sites.find(source);
    site = other ? other->site : CaptureSites::kUnknown;
  }
  return site != CaptureSites::kUnknown ? &x_sites.at(site) : nullptr;
}

GraphTracker::Counts GraphTracker::counts() const {
  return {x_launches.load(std::memory_order_relaxed), x_unknown_launches.load(std::memory_order_relaxed),
          x_work.load(std::memory_order_relaxed), x_received.load(std::memory_order_relaxed)};
}

}  // namespace cuptiprof
