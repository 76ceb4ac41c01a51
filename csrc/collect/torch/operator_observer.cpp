#include "collect/torch/operator_observer.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "collect/regions/operator_inputs.h"
#include "collect/regions/regions.h"
#include "collect/torch/collective_records.h"
#include "collect/torch/operator_modules.h"
#include "collect/torch/operator_names.h"
#include "threads/thread_slots.h"

namespace cuptiprof::torch {
namespace {

std::mutex g_attaching_mutex;  // guards what is below but the level
Wanted g_wanted;
bool g_is_attached = false;
uint64_t g_handle = 0;
// Set once, before the first callback.
Library g_library;
Layout g_layout;
InputLayout g_input_layout;

std::atomic<ScopeLevel> g_operators_level{ScopeLevel::kOff};
std::atomic<bool> g_wants_inputs{false};

uint64_t task_of_operator() noexcept {
  const TaskKey key = g_task_key.load(std::memory_order_relaxed);
  return key ? key() : 0;
}

NoContext operator_begins(const RecordFunction& call) {
  const ScopeLevel level = g_operators_level.load(std::memory_order_relaxed);
  if (level == ScopeLevel::kOff || !(g_region_mode.load(std::memory_order_relaxed) & kRegionsOn)) return {};
  ThreadSlot* slot = this_thread_slot();
  if (!slot) [[unlikely]] {
    count(g_beyond_slots);
    return {};
  }
  if (slot->torch_thread.load(std::memory_order_relaxed) == 0) [[unlikely]]
    slot->torch_thread.store(field<uint64_t>(call, g_layout.thread), std::memory_order_relaxed);
  const bool has_room = slot->operators.has_room();
  if (const uint32_t forgotten = slot->operators.take_forgotten()) [[unlikely]]
    slot->open_regions -= std::min(slot->open_regions, forgotten);
  if (!has_room) [[unlikely]] {
    count(g_region_overflow);
    return {};
  }
  const auto scope = field<uint8_t>(call, g_layout.scope);
  const char* name = g_library.name(&call);
  if (is_collective(name)) [[unlikely]]
    collective_begins(call, slot->tid.load(std::memory_order_relaxed));
  const uint32_t label = operator_label(name, scope);
  const uint64_t forward_thread =
      scope == kBackwardScope ? field<uint64_t>(call, g_layout.forward_thread) : 0;
  const int64_t sequence = field<int64_t>(call, g_layout.sequence);
  const OperatorModule of =
      module_of_operator(*slot, name, scope, slot->torch_thread.load(std::memory_order_relaxed),
                         forward_thread, sequence, g_library.next_node);
  uint64_t id = 0;
  if (level == ScopeLevel::kFull) {
    const uint64_t task = task_of_operator();
    const int64_t stamp = read_stamp();
    const FrameSource frame_source = g_frame_source.load(std::memory_order_relaxed);
    const uint32_t frame = frame_source ? of_node(frame_source(), of.within) : 0;
    const uint32_t inputs =
        g_wants_inputs.load(std::memory_order_relaxed) ? inputs_of(call, g_input_layout) : 0;
    const bool has_detail = forward_thread != 0 || frame != 0 || inputs != 0;
    if (has_detail && !slot->ring.push({.stamp = stamp,
                                        .task = forward_thread,
                                        .origin = {0, frame},
                                        .id = inputs,
                                        .kind = EventKind::kOperatorDetail},
                                       slot->open_regions + 2))
      count(g_region_overflow);
    id = push_opening(*slot, {.stamp = stamp,
                              .task = task,
                              .object = static_cast<uint64_t>(sequence + 1),
                              .id = label,
                              .kind = EventKind::kOperatorEnter});
    if (id == 0) [[unlikely]]
      return {};
  }
  slot->operators.push(reinterpret_cast<uint64_t>(&call), label, id, of.node, of.makes);
  return {};
}

void write_exit(ThreadSlot& slot, uint64_t id) noexcept {
  const bool here = slot_of_region(id) == slot.index;
  if (!slot.ring.push(
          {.stamp = read_stamp(), .task = 0, .region = id, .id = 0, .kind = EventKind::kOperatorExit},
          here ? 0 : slot.open_regions)) [[unlikely]]
    count(g_region_overflow);
  if (!here) [[unlikely]]
    thread_slot(slot_of_region(id)).left_elsewhere.fetch_add(1, std::memory_order_relaxed);
  else if (slot.open_regions > 0)
    --slot.open_regions;
}

// It began on another thread than this one.
void ends_elsewhere(ThreadSlot& slot, uint64_t call, uint64_t thread) noexcept {
  for (uint32_t i = 0; i < thread_slot_count(); ++i) {
    ThreadSlot& other = thread_slot(i);
    uint64_t id = 0;
    if (other.torch_thread.load(std::memory_order_relaxed) != thread || !other.operators.id_of(call, &id))
      continue;
    if (!other.operators.ended_elsewhere(call)) count(g_region_overflow);
    if (id != 0) write_exit(slot, id);
    return;
  }
}

void operator_ends(const RecordFunction& call, void*) {
  if (g_open_collectives.load(std::memory_order_relaxed) != 0) [[unlikely]]
    collective_ends(call);
  ThreadSlot* slot = this_thread_slot();
  if (!slot) [[unlikely]]
    return count(g_beyond_slots);
  uint64_t id = 0;
  const auto address = reinterpret_cast<uint64_t>(&call);
  NodesMade made;
  if (slot->operators.pop(address, &id, &made)) [[likely]] {
    if (made.module != 0)
      operator_made(made, slot->torch_thread.load(std::memory_order_relaxed), g_library.next_node());
    if (id != 0) write_exit(*slot, id);
    return;
  }
  // It was open before the session, or found no room; or it began on another thread.
  const auto thread = field<uint64_t>(call, g_layout.thread);
  if (thread != slot->torch_thread.load(std::memory_order_relaxed)) ends_elsewhere(*slot, address, thread);
}

void attach() noexcept {
  if (g_is_attached || !g_library || g_wanted.level == ScopeLevel::kOff) return;
  OpenOperators::forget_all();
  forget_operator_inputs();
  g_operators_are_scopes.store(g_wanted.level == ScopeLevel::kLaunch);
  g_operators_level.store(g_wanted.level);
  Callback callback{&operator_begins, &operator_ends};
  callback.scopes.fill(true);
  callback.needs_inputs = g_wanted.shapes && g_input_layout.is_known();
  g_wants_inputs.store(callback.needs_inputs);
  g_handle = g_library.add_global_callback(callback);
  g_is_attached = true;
}

}  // namespace

void observe_operators(Wanted wanted) noexcept {
  const std::lock_guard lock(g_attaching_mutex);
  g_wanted = wanted;
  if (wanted.level != ScopeLevel::kOff) return attach();
  g_operators_level.store(ScopeLevel::kOff);
  g_operators_are_scopes.store(false);
  if (g_is_attached) g_library.remove_callback(g_handle);
  g_is_attached = false;
}

void know_torch(const Library& library, const Layout& layout, const InputLayout& inputs) noexcept {
  const std::lock_guard lock(g_attaching_mutex);
  if (!g_library) {
    g_layout = layout;
    g_input_layout = inputs;
    g_library = library;
    find_collective_facts(library.handle);
  }
  attach();
}

bool knows_torch() noexcept {
  const std::lock_guard lock(g_attaching_mutex);
  return static_cast<bool>(g_library);
}

}  // namespace cuptiprof::torch
