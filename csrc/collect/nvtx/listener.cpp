#include "collect/nvtx/listener.h"

#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/stamp_clock.h"
#include "collect/nvtx/nvtx_library.h"
#include "collect/nvtx/said_text.h"
#include "collect/regions/regions.h"
#include "collect/regions/scope_labels.h"
#include "launch/launch_gate.h"
#include "nvtx/link.h"
#include "threads/open_start_end.h"
#include "threads/thread_slots.h"

namespace cuptiprof {
namespace {

std::atomic<ScopeLevel> g_level{ScopeLevel::kOff};
thread_local uint32_t t_own_calls [[gnu::tls_model("initial-exec")]] = 0;

// IDs of pushes of the level "launch" carry the epoch of the stacks that they are on; those of regions are
// smaller.
constexpr uint64_t kOnLaunchStack = uint64_t{1} << 63;

bool is_heard(uint32_t mode) noexcept { return mode & kRegionsOn && t_own_calls == 0; }

// Labels of plain texts by hash: at first sight they are interned, which locks and allocates.
VerdictCache g_labels;
std::mutex g_known_labels_mutex;  // guards writing it

uint32_t interned(const nvtx::Said& said, std::string_view name) {
  return scope_label_id(ScopeSource::kNvtx, said.domain, name);
}

uint32_t label_of(const nvtx::Said& said, std::string_view name) {
  const uint32_t first = g_first_label.load(std::memory_order_relaxed);
  if (said.label && name.size() == said.text_bytes) {
    std::atomic_ref<uint64_t> known(*said.label);
    uint64_t label = known.load(std::memory_order_relaxed);
    if (label < first) known.store(label = interned(said, name), std::memory_order_relaxed);
    return static_cast<uint32_t>(label);
  }
  uint64_t key = std::hash<std::string_view>()(name) ^ said.domain_number * 0x9e3779b97f4a7c15ull;
  key = key > 1 ? key : 2;  // neither free nor taken
  uint32_t label = g_labels.find(key, first);
  if (label == VerdictCache::kNone) {
    label = interned(said, name);
    const std::lock_guard lock(g_known_labels_mutex);
    g_labels.put(key, first, label);
  }
  return label;
}

// Null: nothing was said beside the name.
std::unique_ptr<RegionMetadata> attributes_of(const nvtx::Said& said, const TorchText& torch) {
  std::string category;
  const nvtx::Link* link = NvtxLibrary::opened();
  if (said.category != 0 && link) {
    char name[256];
    category.assign(name, link->category_name(said.domain_number, said.category, name, sizeof name));
  }
  std::string json = attributes_json(said, torch, category);
  if (json.empty()) return nullptr;
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  return std::make_unique<RegionMetadata>(RegionMetadata{kNone, kNone, std::move(json)});
}

uint64_t running_task() noexcept {
  const TaskKey key = g_task_key.load(std::memory_order_relaxed);
  return key ? key() : 0;
}

// Which stack of its thread a range goes on: each domain has one, and so has each task.
uint32_t stack_of(uint32_t domain, uint64_t task) noexcept {
  return static_cast<uint32_t>((task ^ domain) * 0x9e3779b97f4a7c15ull >> 32) | 1;
}

uint64_t push(const nvtx::Said* said, uint64_t task) noexcept try {
  const uint32_t mode = g_region_mode.load(std::memory_order_relaxed);
  const ScopeLevel level = g_level.load(std::memory_order_relaxed);
  if (!is_heard(mode) || level == ScopeLevel::kOff) return 0;
  const TorchText text = torch_text({said->text, said->text_bytes});
  const uint32_t label = label_of(*said, text.name);
  if (level == ScopeLevel::kFull)
    return enter_region(mode, label, attributes_of(*said, text).release(), task);
  ThreadSlot* slot = this_thread_slot();
  if (!slot) {
    count(g_beyond_slots);
    return 0;
  }
  slot->scopes.push(label, stack_of(said->domain_number, task));
  return kOnLaunchStack | uint64_t{g_launch_scopes_epoch.load(std::memory_order_relaxed)} << 32 |
         stack_of(said->domain_number, task);
} catch (...) {
  count(g_labels_lost);  // no memory
  return 0;
}

void pop(uint64_t id, uint64_t task) noexcept {
  if (!(id & kOnLaunchStack)) return exit_region(id, task);
  ThreadSlot* slot = this_thread_slot();
  const auto epoch = static_cast<uint32_t>((id & ~kOnLaunchStack) >> 32);
  if (slot && epoch == g_launch_scopes_epoch.load(std::memory_order_relaxed))
    slot->scopes.pop(static_cast<uint32_t>(id));
}

// An event that no other must follow.
void write(EventKind kind, uint64_t range, uint32_t label,
           std::unique_ptr<RegionMetadata> attributes) noexcept {
  ThreadSlot* slot = this_thread_slot();
  if (!slot) return count(g_beyond_slots);
  if (!slot->ring.push(
          {.stamp = read_stamp(), .task = range, .metadata = attributes.get(), .id = label, .kind = kind},
          slot->open_regions))
    return count(g_region_overflow);
  static_cast<void>(attributes.release());
  if (slot->ring.pushed() >= slot->next_wake) {
    slot->next_wake = slot->ring.pushed() + kWakeEvents;
    g_decoder_bell.ring();
  }
}

void start(const nvtx::Said* said, uint64_t range) noexcept try {
  if (!is_heard(g_region_mode.load(std::memory_order_relaxed))) return;
  const TorchText text = torch_text({said->text, said->text_bytes});
  const uint32_t label = label_of(*said, text.name);
  g_open_start_end.started(range, label);
  write(EventKind::kRangeStart, range, label, attributes_of(*said, text));
} catch (...) {
  count(g_labels_lost);
}

void end(uint64_t range) noexcept {
  g_open_start_end.ended(range);
  if (g_region_mode.load(std::memory_order_relaxed) & kRegionsOn)
    write(EventKind::kRangeEnd, range, 0, nullptr);
}

void mark(const nvtx::Said* said) noexcept try {
  if (!is_heard(g_region_mode.load(std::memory_order_relaxed))) return;
  const TorchText text = torch_text({said->text, said->text_bytes});
  write(EventKind::kMark, 0, label_of(*said, text.name), attributes_of(*said, text));
} catch (...) {
  count(g_labels_lost);
}

constexpr nvtx::Listener kListener = {
    .version = nvtx::kLinkVersion,
    .task = &running_task,
    .push = &push,
    .pop = &pop,
    .start = &start,
    .end = &end,
    .mark = &mark,
};

}  // namespace

void listen_to_nvtx(ScopeLevel level) noexcept {
  g_open_start_end.forget();
  g_level.store(level, std::memory_order_relaxed);
  const nvtx::Link* link = NvtxLibrary::opened();
  if (!link) return;
  link->listen(level == ScopeLevel::kOff ? nullptr : &kListener);
  if (level != ScopeLevel::kOff) return;
  // Domains and strings are registered once: those lost before this session are missing in it, too.
  static std::atomic<uint64_t> told{0};
  const uint64_t lost = link->lost();
  count(g_labels_lost, lost - told.exchange(lost));
}

void leave_nvtx_to_parent() noexcept {
  if (const nvtx::Link* link = NvtxLibrary::opened()) link->listen(nullptr);
}

OwnNvtxCall::OwnNvtxCall() noexcept { ++t_own_calls; }
OwnNvtxCall::~OwnNvtxCall() { --t_own_calls; }

}  // namespace cuptiprof
