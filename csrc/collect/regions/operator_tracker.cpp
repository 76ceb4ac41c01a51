#include "collect/regions/operator_tracker.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "collect/regions/operator_inputs.h"
#include "collect/regions/scope_labels.h"
#include "threads/frame_tree.h"

namespace cuptiprof {
namespace {

constexpr uint8_t kBackwardNode = 1;  // operators.scope

uint32_t tid_of_slot(uint32_t slot) { return thread_slot(slot).tid.load(std::memory_order_relaxed); }

}  // namespace

OperatorTracker::OperatorTracker(size_t forward_bytes, Losses& losses)
    : x_losses(losses),
      x_forward_size(std::bit_floor(std::max<size_t>(forward_bytes / sizeof(Forward), 1024))) {}

OperatorTracker::Thread& OperatorTracker::thread(uint32_t slot) {
  if (slot >= x_threads.size()) x_threads.resize(slot + 1);
  return x_threads[slot];
}

OperatorTracker::Named& OperatorTracker::named(uint32_t label) {
  const auto [found, is_new] = x_named.try_emplace(label);
  Named& n = found->second;
  if (is_new) {
    const ScopeLabel text = scope_label(label);
    n.scope = text.domain.empty() ? 0 : static_cast<uint8_t>(text.domain[0]);
    n.is_backward = is_backward_scope(text);
  }
  return n;
}

uint32_t OperatorTracker::name_id(Store& store, uint32_t label) {
  Named& n = named(label);
  if (n.generation != x_generation) {
    n.name = store.text(scope_label(label).name);
    n.generation = x_generation;
  }
  return n.name;
}

OperatorTracker::Forward& OperatorTracker::forward_of(uint64_t thread, uint64_t sequence) {
  if (x_forward.empty()) x_forward.resize(x_forward_size);
  return x_forward[(sequence + thread * 0x9e3779b97f4a7c15ull) & (x_forward_size - 1)];
}

const OperatorTracker::Inputs& OperatorTracker::inputs(Store& store, uint32_t number) {
  const auto [found, is_new] = x_inputs.try_emplace(number);
  if (is_new) {
    const InputTexts texts = operator_inputs(number);
    found->second = {store.text(texts.shapes), store.text(texts.types)};
  }
  return found->second;
}

void OperatorTracker::detail(uint32_t slot, const Event& e) {
  Thread& t = thread(slot);
  t.next_forward_thread = e.task;
  t.next_frame = e.origin.frame;
  t.next_inputs = e.id;
}

void OperatorTracker::enter(uint32_t slot, const Event& e, uint64_t position, int64_t time,
                            const Around& around) {
  Thread& t = thread(slot);
  const Named& name = named(e.id);
  Open o;
  o.id = region_id(thread_slot(slot), position);
  o.start = time;
  o.sequence = e.object;
  o.forward_thread = std::exchange(t.next_forward_thread, 0);
  o.frame = std::exchange(t.next_frame, 0);
  o.inputs = std::exchange(t.next_inputs, 0);
  o.around = around;
  o.label = e.id;
  o.instance = ++x_instances;
  o.backward = name.is_backward || around.backward;
  if (!t.open.empty()) {
    const Open& parent = t.open.back();
    o.parent = parent.instance;
    o.backward |= parent.backward;
    o.path = g_scope_trie.child(parent.path, e.id);
  } else {
    o.path = g_scope_trie.child(0, e.id);
  }
  if (o.sequence != 0) {
    if (name.scope == kBackwardNode) {
      const Forward& made = forward_of(o.forward_thread, o.sequence);
      if (made.sequence == o.sequence && made.thread == o.forward_thread) o.forward = made.instance;
    } else {
      const uint64_t torch_thread = thread_slot(slot).torch_thread.load(std::memory_order_relaxed);
      forward_of(torch_thread, o.sequence) = {o.sequence, torch_thread, o.instance};
    }
  }
  t.open.push_back(o);
}

void OperatorTracker::exit(Store& store, const Texts& texts, const Event& e, int64_t time) {
  const uint32_t slot = slot_of_region(e.region);
  if (slot >= x_threads.size()) return;
  auto& open = x_threads[slot].open;
  // Nearly always the innermost one.
  const auto found =
      std::find_if(open.rbegin(), open.rend(), [&](const Open& o) { return o.id == e.region; });
  if (found == open.rend()) return;  // of before the session
  write(store, texts, *found, tid_of_slot(slot), time, false);
  // What began inside of it and goes on (a record_function under a dispatch mode) is of what was around it.
  const uint32_t ended = found->instance;
  for (auto o = open.erase(std::prev(found.base())); o != open.end(); ++o) {
    const Open* parent = o == open.begin() ? nullptr : &*std::prev(o);
    if (o->parent == ended) o->parent = parent ? parent->instance : 0;
    o->path = g_scope_trie.child(parent ? parent->path : 0, o->label);
  }
}

void OperatorTracker::end_thread(Store& store, const Texts& texts, uint32_t slot, int64_t now) {
  if (slot >= x_threads.size()) return;
  for (const Open& o : x_threads[slot].open) write(store, texts, o, tid_of_slot(slot), now, true);
  x_threads[slot] = {};
}

void OperatorTracker::write_open(Store& store, const Texts& texts, int64_t now) {
  for (uint32_t slot = 0; slot < x_threads.size(); ++slot)
    for (const Open& o : x_threads[slot].open) write(store, texts, o, tid_of_slot(slot), now, true);
}

void OperatorTracker::write(Store& store, const Texts& texts, const Open& o, uint32_t tid, int64_t end,
                            bool is_open) {
  rows::operators row;
  row.start = o.start;
  row.end = std::max(end, o.start);
  row.sequence = o.sequence;
  row.name = name_id(store, o.label);
  row.instance = o.instance;
  row.parent = o.parent;
  row.thread = tid;
  row.region = texts.regions.string_id(store, o.around.region);
  row.region_instance = o.around.instance;
  row.step = o.around.step;
  row.forward = o.forward;
  if (o.inputs != 0) {
    const Inputs& of = inputs(store, o.inputs);
    row.shapes = of.shapes;
    row.dtypes = of.types;
  }
  if (o.frame != 0) {
    row.stack = g_frame_tree.python_of(o.frame);
    row.line = texts.frames.line(store, row.stack);
    row.module = texts.frames.module(store, g_frame_tree.module_of(o.frame));
  }
  row.scope = named(o.label).scope;
  row.backward = o.backward;
  row.is_open = is_open;
  store.append(row);
}

void OperatorTracker::next_generation() {
  for (Thread& t : x_threads) {
    uint32_t around = 0;
    for (Open& o : t.open) around = o.path = g_scope_trie.child(around, o.label);
  }
  x_named.clear();
}

OperatorSite OperatorTracker::at(uint32_t slot) const {
  if (slot >= x_threads.size() || x_threads[slot].open.empty()) return {};
  const Open& o = x_threads[slot].open.back();
  return {o.path, o.instance, o.backward};
}

}  // namespace cuptiprof
