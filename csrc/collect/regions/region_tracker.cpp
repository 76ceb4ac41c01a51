#include "collect/regions/region_tracker.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "collect/regions/backward_caller.h"
#include "collect/regions/regions.h"
#include "collect/regions/scope_labels.h"

namespace cuptiprof {
namespace {

constexpr size_t kTokens = 1u << 16;

void drop(const Event& e) {
  if (e.kind == EventKind::kEnter || e.kind == EventKind::kRangeStart || e.kind == EventKind::kMark)
    delete e.metadata;
}

}  // namespace

RegionTracker::~RegionTracker() {
  for (auto& t : x_threads) {
    for (auto& e : t.pending) drop(e);
    for (auto& [task, stack] : t.stacks)
      for (auto& r : stack) delete r.metadata;
  }
}

RegionTracker::RegionTracker(CorrelationMap& calls, Losses& losses, size_t path_bytes, GraphTracker* graphs,
                             OperatorTracker* operators, bool ages)
    : x_calls(calls),
      x_paths(path_bytes, losses),
      x_markers(losses),
      x_graphs(graphs),
      x_operators(operators),
      x_ages(ages) {
  // What an earlier session left in the rings (exits after its end) belongs to nobody, and may carry another
  // clock's stamps.
  forget_backward_callers();
  for (uint32_t i = 0; i < thread_slot_count(); ++i) thread_slot(i).ring.drain(&drop);
}

void RegionTracker::drain(Store& store) {
  // Only what happened until now is applied: a ring read later than another also holds later events, and what
  // a thread was handed depends on the order between threads. Events after this moment wait for the next
  // pass. The launches of records that were delivered before this call lie before it.
  const int64_t until = x_clock.look();
  const uint32_t slots = thread_slot_count();
  if (x_threads.size() < slots) x_threads.resize(slots);
  auto ready = [&](const ThreadState& t) {
    return t.applied < t.pending.size() && x_clock.is_past(t.pending[t.applied].stamp);
  };
  size_t sources = 0;
  uint32_t only = 0;
  for (uint32_t i = 0; i < slots; ++i) {
    ThreadState& t = x_threads[i];
    const bool ended = thread_slot(i).state.load(std::memory_order_acquire) == SlotState::kThreadEnded;
    if (t.pending.empty()) t.first = thread_slot(i).ring.popped();
    thread_slot(i).ring.drain([&](const Event& e) { t.pending.push_back(e); });
    if (ready(t)) ++sources, only = i;
    if (ended && t.pending.empty()) {
      end_thread(store, i, until);
      recycle_slot(thread_slot(i));
    }
  }
  if (sources == 1) {
    ThreadState& t = x_threads[only];
    while (ready(t)) apply_next(store, only);
  }
  // Merge by stamp. The order within a thread is kept whatever its clock says.
  while (sources > 1) {
    uint32_t next = slots;
    int64_t first = std::numeric_limits<int64_t>::max(), second = first;
    sources = 0;
    for (uint32_t i = 0; i < slots; ++i) {
      const ThreadState& t = x_threads[i];
      if (!ready(t)) continue;
      ++sources;
      const int64_t stamp = t.pending[t.applied].stamp;
      if (next == slots || stamp < first) {
        second = next == slots ? second : first;
        first = stamp;
        next = i;
      } else {
        second = std::min(second, stamp);
      }
    }
    if (sources == 0) break;
    ThreadState& t = x_threads[next];
    do {
      apply_next(store, next);
    } while (ready(t) && t.pending[t.applied].stamp <= second);
    sources = 2;  // look again
  }
  for (ThreadState& t : x_threads) {
    t.pending.erase(t.pending.begin(), t.pending.begin() + static_cast<ptrdiff_t>(t.applied));
    t.first += t.applied;
    t.applied = 0;
  }
}

void RegionTracker::apply_next(Store& store, uint32_t slot) {
  ThreadState& t = x_threads[slot];
  const uint64_t position = t.first + t.applied;
  const Event e = t.pending[t.applied++];
  apply(store, slot, e, position);
}

void RegionTracker::apply(Store& store, uint32_t slot, const Event& e, uint64_t position) {
  switch (e.kind) {
    case EventKind::kLaunch: {
      if (x_markers.is_full()) age_start_end_sets(NvtxMarkers::kMaxSets / 2);
      const Place at = work_place(slot, e.task, e.stamp);
      CallSite site{at.node, at.instance, tid_of(slot)};
      site.step = x_step;
      site.backward = in_backward(slot);
      x_calls.put(e.id, site, e.origin, x_calls.with_start_end() ? x_markers.open_set() : 0,
                  x_operators ? x_operators->at(slot) : OperatorSite{});
      break;
    }
    case EventKind::kEnter:
      enter(slot, e, position);
      break;
    case EventKind::kExit:
      exit(store, e);
      break;
    case EventKind::kHandOver:
      if (x_tokens.empty()) x_tokens.resize(kTokens);
      x_tokens[e.id % kTokens] = {e.id, frame_of(slot, e.task)};
      break;
    case EventKind::kAdopt:
      adopt(slot, e, position);
      break;
    case EventKind::kBackwardBegins:
      backward_begins(slot, e.task, e.id != 0);
      break;
    case EventKind::kBackwardEnds:
      backward_ends(slot);
      break;
    case EventKind::kWorksFor:
      x_threads[slot].works_for = e.id;
      break;
    case EventKind::kRangeStart:
    case EventKind::kRangeEnd:
    case EventKind::kMark:
      x_markers.apply(store, e, tid_of(slot), time_of(e));
      break;
    case EventKind::kStep:
      x_step = e.id + 1;
      break;
    case EventKind::kOperatorDetail:
      if (x_operators) x_operators->detail(slot, e);
      break;
    case EventKind::kOperatorEnter:
      if (x_operators) {
        const Place at = work_place(slot, e.task, e.stamp);
        x_operators->enter(slot, e, position, time_of(e), {at.node, at.instance, x_step, in_backward(slot)});
      }
      break;
    case EventKind::kOperatorExit:
      if (x_operators) x_operators->exit(store, {x_paths, x_frame_texts}, e, time_of(e));
      break;
    case EventKind::kNodeOrigin:
      x_threads[slot].node_origin = e.origin;
      break;
    case EventKind::kNodeCreated: {
      const Place at = work_place(slot, e.task, e.stamp);
      const LaunchOrigin origin = std::exchange(x_threads[slot].node_origin, {});
      if (x_graphs) x_graphs->created(e.object, {at.node, at.instance, origin});
      break;
    }
    default:
      if (x_graphs) x_graphs->apply(slot, e);
  }
}

RegionTracker::Place RegionTracker::work_place(uint32_t slot, uint64_t task, int64_t stamp) const {
  const Place at = innermost(slot, task, stamp);
  return at.instance == 0 && is_worker(slot) ? called_backward_from(slot, stamp) : at;
}

RegionTracker::Place RegionTracker::place_of(const OpenRegion& r, int64_t stamp) const {
  if (!r.adopted) return {r.node, r.instance, r.depth};
  const RegionFrame* f = open_frame(r.frame, stamp);
  return f ? Place{f->node, f->instance, f->depth} : Place{};
}

RegionTracker::Place RegionTracker::innermost(uint32_t slot, uint64_t task, int64_t stamp) const {
  const ThreadState& t = x_threads[slot];
  if (t.open == 0) return {};
  for (const uint64_t key : {task, uint64_t{0}}) {
    const auto found = t.stacks.find(key);
    if (found == t.stacks.end()) continue;
    for (auto r = found->second.rbegin(); r != found->second.rend(); ++r)
      if (const Place at = place_of(*r, stamp); at.instance != 0) return at;
  }
  return {};
}

// The call of the engine that this autograd thread works for; null: none, or one of several.
const RegionTracker::Backward* RegionTracker::served_by(uint32_t slot) const {
  if (const uint32_t caller = x_threads[slot].works_for) {
    const auto marked = std::find_if(x_backward.begin(), x_backward.end(),
                                     [caller](const Backward& b) { return b.slot == caller - 1; });
    return marked == x_backward.end() ? nullptr : &*marked;
  }
  // A thread that works for one whom torch knows would have been told.
  return x_backward.size() == 1 && !x_backward[0].marked ? &x_backward[0] : nullptr;
}

RegionTracker::Place RegionTracker::called_backward_from(uint32_t slot, int64_t stamp) const {
  const Backward* caller = served_by(slot);
  return caller ? innermost(caller->slot, caller->task, stamp) : Place{};
}

void RegionTracker::enter(uint32_t slot, const Event& e, uint64_t position) {
  if (x_ages && x_paths.wants_to_age()) age_paths(x_paths.max_nodes() / 2);
  const Place parent = work_place(slot, e.task, e.stamp);
  ThreadState& t = x_threads[slot];
  OpenRegion& r = t.stacks[e.task].emplace_back();
  r.id = region_id(thread_slot(slot), position);
  r.label = e.id;
  r.node = x_paths.child(parent.node, e.id);
  r.instance = ++x_instances;
  r.parent = parent.instance;
  r.depth = parent.instance ? static_cast<uint16_t>(std::min(parent.depth + 1, 65535)) : 0;
  r.start = time_of(e);
  r.task = e.task;
  r.metadata = e.metadata;
  ++t.open;
}

void RegionTracker::exit(Store& store, const Event& e) {
  const uint32_t slot = slot_of_region(e.region);
  if (slot >= x_threads.size()) return;
  ThreadState& t = x_threads[slot];
  const auto place_in = [&](Stack& stack) {
    const auto at =
        std::find_if(stack.rbegin(), stack.rend(), [&](const OpenRegion& r) { return r.id == e.region; });
    return at == stack.rend() ? stack.end() : std::prev(at.base());
  };
  // Left in the task it was entered in, nearly always as the innermost one.
  auto found = t.stacks.find(e.task);
  if (found == t.stacks.end() || place_in(found->second) == found->second.end())
    found = std::find_if(t.stacks.begin(), t.stacks.end(),
                         [&](auto& kv) { return place_in(kv.second) != kv.second.end(); });
  if (found == t.stacks.end()) return;  // entered before the session began
  Stack& stack = found->second;
  const auto at = place_in(stack);
  write_row(store, *at, tid_of(slot), time_of(e), false);
  close(*at, e.stamp);
  stack.erase(at);
  if (stack.empty() && found->first != 0) t.stacks.erase(found);
  --t.open;
}

void RegionTracker::close(OpenRegion& r, int64_t stamp) {
  if (r.frame && !r.adopted) r.frame->end = stamp;
  delete r.metadata;
  r.metadata = nullptr;
}

// What a thread leaves open when it ends is not the next one's that gets its slot.
void RegionTracker::end_thread(Store& store, uint32_t slot, int64_t stamp) {
  const int64_t now = x_clock.run_clock(stamp);
  ThreadState& t = x_threads[slot];
  for (auto& [task, stack] : t.stacks)
    for (OpenRegion& r : stack) {
      write_row(store, r, tid_of(slot), now, true);
      close(r, stamp);
    }
  t.stacks.clear();
  t.open = 0;
  t.works_for = 0;
  if (x_operators) x_operators->end_thread(store, {x_paths, x_frame_texts}, slot, now);
  std::erase_if(x_backward, [slot](const Backward& b) { return b.slot == slot; });
}

void RegionTracker::adopt(uint32_t slot, const Event& e, uint64_t position) {
  OpenRegion r;
  r.id = region_id(thread_slot(slot), position);
  r.adopted = true;
  r.task = e.task;
  if (!x_tokens.empty() && x_tokens[e.id % kTokens].number == e.id) r.frame = x_tokens[e.id % kTokens].frame;
  ThreadState& t = x_threads[slot];
  t.stacks[e.task].push_back(std::move(r));
  ++t.open;
}

std::vector<RegionTracker::Backward>::iterator RegionTracker::caller_in(uint32_t slot) {
  return std::find_if(x_backward.begin(), x_backward.end(),
                      [slot](const Backward& b) { return b.slot == slot; });
}

// Torch's own threads do nothing else, also where no node runs: what DistributedDataParallel does at the end.
bool RegionTracker::in_backward(uint32_t slot) {
  return is_worker(slot) || caller_in(slot) != x_backward.end();
}

void RegionTracker::backward_begins(uint32_t slot, uint64_t task, bool marked) {
  const auto caller = caller_in(slot);
  if (caller == x_backward.end())
    x_backward.push_back({slot, task, 1, marked});
  else
    ++caller->calls;
}

void RegionTracker::backward_ends(uint32_t slot) {
  const auto caller = caller_in(slot);
  if (caller != x_backward.end() && --caller->calls == 0) x_backward.erase(caller);
}

// The frame of the innermost region of a stack, and of all around it.
RegionTracker::Frame RegionTracker::frame_of(uint32_t slot, Stack& stack, uint64_t task) {
  size_t first = stack.size();  // without a frame from here on
  while (first > 0 && !stack[first - 1].frame) --first;
  Frame around = first > 0 ? stack[first - 1].frame : nullptr;
  if (first == 0) {
    const auto outermost = x_threads[slot].stacks.find(0);
    if (task != 0 && outermost != x_threads[slot].stacks.end() && !outermost->second.empty())
      around = frame_of(slot, outermost->second, 0);
    else
      around = frame_of_caller(slot);
  }
  for (; first < stack.size(); ++first) {
    OpenRegion& r = stack[first];
    if (!r.adopted) {
      auto frame = std::make_shared<RegionFrame>();
      frame->node = r.node;
      frame->instance = r.instance;
      frame->depth = r.depth;
      frame->parent = std::move(around);
      around = r.frame = std::move(frame);
    }
  }
  return around;
}

RegionTracker::Frame RegionTracker::frame_of(uint32_t slot, uint64_t task) {
  ThreadState& t = x_threads[slot];
  for (const uint64_t key : {task, uint64_t{0}}) {
    const auto found = t.stacks.find(key);
    if (found != t.stacks.end() && !found->second.empty()) return frame_of(slot, found->second, key);
  }
  return frame_of_caller(slot);
}

RegionTracker::Frame RegionTracker::frame_of_caller(uint32_t slot) {
  const Backward* caller = is_worker(slot) ? served_by(slot) : nullptr;
  return caller && caller->slot != slot ? frame_of(caller->slot, caller->task) : nullptr;
}

void RegionTracker::write_row(Store& store, const OpenRegion& r, uint32_t tid, int64_t end, bool is_open) {
  if (r.adopted) return;
  rows::regions row;
  row.start = r.start;
  row.end = std::max(end, r.start);  // their times are some ten nanoseconds apart from the truth
  row.task = r.task;
  row.flops = r.metadata ? r.metadata->flops : std::nan("");
  row.bytes = r.metadata ? r.metadata->bytes : std::nan("");
  const ScopeLabel label = scope_label(r.label);
  row.name = store.text(label.name);
  row.source = static_cast<uint8_t>(label.source);
  row.domain = store.text(label.domain);
  row.path = path_id(store, r.node);
  row.metadata = r.metadata ? store.text(r.metadata->json) : 0;
  row.instance = r.instance;
  row.parent = r.parent;
  row.thread = tid;
  row.depth = r.depth;
  row.is_open = is_open;
  store.append(row);
}

void RegionTracker::write_open_regions(Store& store, int64_t now) {
  x_markers.write_open(store, now);
  if (x_operators) x_operators->write_open(store, {x_paths, x_frame_texts}, now);
  for (uint32_t slot = 0; slot < x_threads.size(); ++slot) {
    for (const auto& [task, stack] : x_threads[slot].stacks)
      for (const OpenRegion& r : stack) write_row(store, r, tid_of(slot), now, true);
  }
}

}  // namespace cuptiprof
