#include "collect/region_tracker.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/clock.h"
#include "collect/regions.h"

namespace cuptiprof {

RegionTracker::~RegionTracker() {
  for (auto& t : x_threads)
    for (auto& e : t.pending) delete e.metadata;
  for (auto& t : x_threads)
    for (auto& [task, stack] : t.stacks)
      for (auto& r : stack) delete r.metadata;
}

RegionTracker::RegionTracker(CorrelationMap& calls, Losses& losses, Attribution attribution)
    : x_calls(calls), x_losses(losses) {
  if (attribution == Attribution::kExternal) x_window.enable();
  x_nodes.push_back({});
  // What an earlier session left in the rings (exits after its end) belongs to nobody, and may carry another
  // clock's times.
  for (uint32_t i = 0; i < thread_slot_count(); ++i)
    thread_slot(i).ring.drain([](const Event& e) { delete e.metadata; });
  if (x_window.enabled())
    for (uint32_t i = 0; i < kMaxThreads; ++i) x_began_at.push_back(thread_slot(i).ring.popped());
}

void RegionTracker::drain(Store& store) {
  // Only what happened until now is applied: a ring read later than another also holds later events, and what
  // a worker thread inherits depends on the order between threads. Events after this moment wait for the next
  // pass. The launches of records that were delivered before this call lie before it.
  const int64_t until = now_ns();
  const uint32_t slots = thread_slot_count();
  if (x_threads.size() < slots) x_threads.resize(slots);
  auto ready = [&](const ThreadState& t) { return t.at < t.pending.size() && t.pending[t.at].time <= until; };
  size_t sources = 0;
  uint32_t only = 0;
  for (uint32_t i = 0; i < slots; ++i) {
    ThreadState& t = x_threads[i];
    const bool ended = thread_slot(i).state.load(std::memory_order_acquire) == 2;
    if (t.pending.empty()) t.first = thread_slot(i).ring.popped();
    thread_slot(i).ring.drain([&](const Event& e) { t.pending.push_back(e); });
    if (ready(t)) ++sources, only = i;
    if (ended && t.pending.empty()) recycle_slot(thread_slot(i));
  }
  if (sources == 1) {
    ThreadState& t = x_threads[only];
    while (ready(t)) apply_next(store, only);
  }
  // Merge by time. The order within a thread is kept whatever its clock says.
  while (sources > 1) {
    uint32_t next = slots;
    int64_t first = std::numeric_limits<int64_t>::max(), second = first;
    sources = 0;
    for (uint32_t i = 0; i < slots; ++i) {
      const ThreadState& t = x_threads[i];
      if (!ready(t)) continue;
      ++sources;
      const int64_t time = t.pending[t.at].time;
      if (next == slots || time < first) {
        second = next == slots ? second : first;
        first = time;
        next = i;
      } else {
        second = std::min(second, time);
      }
    }
    if (sources == 0) break;
    ThreadState& t = x_threads[next];
    do {
      apply_next(store, next);
    } while (ready(t) && t.pending[t.at].time <= second);
    sources = 2;  // look again
  }
  for (ThreadState& t : x_threads) {
    t.pending.erase(t.pending.begin(), t.pending.begin() + static_cast<ptrdiff_t>(t.at));
    t.first += t.at;
    t.at = 0;
  }
}

void RegionTracker::apply_next(Store& store, uint32_t slot) {
  ThreadState& t = x_threads[slot];
  const uint64_t position = t.first + t.at;
  const Event e = t.pending[t.at++];
  apply(store, slot, e, position);
  if (!x_window.enabled() || e.kind == EventKind::kLaunch) return;
  uint32_t from = 0;
  const OpenRegion* r = inherited(&from);
  x_window.inherits_from(e.time, r ? site_of(from, *r) : CallSite{});
}

CallSite RegionTracker::site_of(uint32_t slot, const OpenRegion& r) const {
  return {r.node, r.instance, thread_slot(slot).tid.load(std::memory_order_relaxed)};
}

void RegionTracker::joined(uint32_t correlation, uint64_t external_id) {
  if (const CallSite* site = x_window.find(external_id)) return x_calls.put(correlation, *site);
  // Open for so long that newer regions took its place in the window.
  for (uint32_t slot = 0; slot < x_threads.size(); ++slot)
    for (const auto& [task, stack] : x_threads[slot].stacks)
      for (const OpenRegion& r : stack)
        if (r.external_id == external_id) return x_calls.put(correlation, site_of(slot, r));
  // Too many regions came and went before the record: lost. A region entered before this session is nobody's.
  const auto [slot, position] = slot_and_position(external_id);
  if (slot < x_began_at.size() && position >= x_began_at[slot]) count(x_losses.orphan_correlations);
}

void RegionTracker::called(uint32_t correlation, uint32_t thread, int64_t time) {
  if (x_calls.find(correlation)) return;
  CallSite site{0, 0, thread};
  if (!x_own_regions.contains(thread)) {
    const CallSite from = x_window.inherited_at(time);
    site.node = from.node;
    site.instance = from.instance;
  }
  x_calls.put(correlation, site);
}

void RegionTracker::apply(Store& store, uint32_t slot, const Event& e, uint64_t position) {
  switch (e.kind) {
    case EventKind::kLaunch: {
      const OpenRegion* r = innermost(slot, e.task);
      if (!r && (is_worker(slot) || !thread_slot(slot).ever_entered.load(std::memory_order_relaxed)))
        r = inherited();
      const uint32_t tid = thread_slot(slot).tid.load(std::memory_order_relaxed);
      x_calls.put(e.id, {r ? r->node : 0, r ? r->instance : 0, tid});
      break;
    }
    case EventKind::kEnter:
      enter(slot, e, position);
      break;
    case EventKind::kExit:
      exit(store, slot, e);
      break;
    case EventKind::kCaptured:
      break;
  }
}

const RegionTracker::OpenRegion* RegionTracker::innermost(uint32_t slot, uint64_t task) const {
  const ThreadState& t = x_threads[slot];
  if (t.open == 0) return nullptr;
  for (const uint64_t key : {task, uint64_t{0}}) {
    const auto found = t.stacks.find(key);
    if (found != t.stacks.end() && !found->second.empty()) return &found->second.back();
  }
  return nullptr;
}

const RegionTracker::OpenRegion* RegionTracker::inherited(uint32_t* from) const {
  if (x_threads_open != 1) return nullptr;
  for (uint32_t slot = 0; slot < x_threads.size(); ++slot) {
    const ThreadState& t = x_threads[slot];
    if (t.open == 0 || is_worker(slot)) continue;
    const Stack* only = nullptr;
    for (const auto& [task, stack] : t.stacks) {
      if (stack.empty()) continue;
      if (only) return nullptr;  // several tasks: nobody can say which
      only = &stack;
    }
    if (from) *from = slot;
    return only ? &only->back() : nullptr;
  }
  return nullptr;
}

void RegionTracker::enter(uint32_t slot, const Event& e, uint64_t position) {
  const OpenRegion* parent = innermost(slot, e.task);
  if (!parent && is_worker(slot)) parent = inherited();
  OpenRegion r{};
  r.name = e.id;
  r.node = child_node(parent ? parent->node : 0, e.id);
  r.instance = ++x_instances;
  r.parent = parent ? parent->instance : 0;
  r.depth = parent ? static_cast<uint16_t>(std::min(parent->depth + 1, 65535)) : 0;
  r.start = e.time;
  r.task = e.task;
  r.metadata = e.metadata;
  r.external_id = external_region_id(thread_slot(slot), position);
  if (x_window.enabled()) {
    x_window.put(r.external_id, site_of(slot, r));
    if (!is_worker(slot)) {
      x_own_regions.insert(thread_slot(slot).tid.load(std::memory_order_relaxed));
      x_own_regions.insert(thread_slot(slot).system_tid.load(std::memory_order_relaxed));
    }
  }
  ThreadState& t = x_threads[slot];
  t.stacks[e.task].push_back(r);
  if (t.open++ == 0 && !is_worker(slot)) ++x_threads_open;
}

void RegionTracker::exit(Store& store, uint32_t slot, const Event& e) {
  ThreadState& t = x_threads[slot];
  auto found = t.stacks.find(e.task);
  auto holds = [&](const Stack& s) {
    return std::any_of(s.begin(), s.end(), [&](const OpenRegion& r) { return r.name == e.id; });
  };
  if (found == t.stacks.end() || !holds(found->second)) {
    // Left in another task than it was entered in (a context manager handed on), or entered before the
    // session began.
    found = std::find_if(t.stacks.begin(), t.stacks.end(), [&](const auto& kv) { return holds(kv.second); });
    if (found == t.stacks.end()) return;
  }
  Stack& stack = found->second;
  for (size_t i = stack.size(); i-- > 0;) {
    if (stack[i].name != e.id) continue;
    write_row(store, stack[i], thread_slot(slot).tid.load(std::memory_order_relaxed), e.time, false);
    delete stack[i].metadata;
    if (x_window.enabled()) x_window.put(stack[i].external_id, site_of(slot, stack[i]));
    stack.erase(stack.begin() + static_cast<ptrdiff_t>(i));
    break;
  }
  if (stack.empty() && found->first != 0) t.stacks.erase(found);
  if (--t.open == 0 && !is_worker(slot)) --x_threads_open;
}

uint32_t RegionTracker::child_node(uint32_t parent, uint32_t name) {
  const uint64_t key = uint64_t{parent} << 32 | name;
  const auto [found, is_new] = x_children.try_emplace(key, static_cast<uint32_t>(x_nodes.size()));
  if (is_new) {
    PathNode node;
    if (parent) node.text = x_nodes[parent].text + '/';
    for (const char c : region_name(name)) {
      if (c == '/' || c == '\\') node.text += '\\';
      node.text += c;
    }
    x_nodes.push_back(std::move(node));
  }
  return found->second;
}

uint32_t RegionTracker::intern_path(Store& store, uint32_t node) {
  PathNode& n = x_nodes[node];
  n.string_id = store.strings().intern(n.text);
  n.generation = x_generation;
  return n.string_id;
}

void RegionTracker::write_row(Store& store, const OpenRegion& r, uint32_t tid, int64_t end, bool is_open) {
  rows::regions row;
  row.start = r.start;
  row.end = end;
  row.task = r.task;
  row.flops = r.metadata ? r.metadata->flops : std::nan("");
  row.bytes = r.metadata ? r.metadata->bytes : std::nan("");
  row.name = store.strings().intern(region_name(r.name));
  row.path = path_id(store, r.node);
  row.metadata = r.metadata ? store.strings().intern(r.metadata->json) : 0;
  row.instance = r.instance;
  row.parent = r.parent;
  row.thread = tid;
  row.depth = r.depth;
  row.is_open = is_open;
  store.append(row);
}

void RegionTracker::write_open_regions(Store& store, int64_t now) {
  for (uint32_t slot = 0; slot < x_threads.size(); ++slot) {
    const uint32_t tid = thread_slot(slot).tid.load(std::memory_order_relaxed);
    for (const auto& [task, stack] : x_threads[slot].stacks)
      for (const OpenRegion& r : stack) write_row(store, r, tid, now, true);
  }
}

}  // namespace cuptiprof
