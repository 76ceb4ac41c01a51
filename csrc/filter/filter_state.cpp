#include "filter/filter_state.h"

#include <new>

namespace cuptiprof {
namespace {

// splitmix64's finaliser: spreads small integers over all bits.
uint64_t mix(uint64_t h, uint64_t value) noexcept {
  h += value + 0x9e3779b97f4a7c15ULL;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ULL;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebULL;
  return h ^ (h >> 31);
}

uint64_t mix(uint64_t h, const Dim3& dims) noexcept {
  for (const int32_t d : dims) h = mix(h, static_cast<uint32_t>(d));
  return h;
}

uint64_t mix_config(uint64_t h, const LaunchView& launch) noexcept {
  return mix(mix(mix(h, launch.grid), launch.block), static_cast<uint64_t>(launch.shared_memory));
}

}  // namespace

CounterTable::CounterTable(size_t max_keys) : x_mask(max_keys * 2 - 1), x_left(max_keys) {
  // calloc: pages are touched only when used.
  x_slots.reset(static_cast<Slot*>(std::calloc(max_keys * 2, sizeof(Slot))));
  if (!x_slots) throw std::bad_alloc();
}

uint64_t* CounterTable::find(uint64_t key) noexcept {
  if (key == 0) key = 1;
  for (size_t i = key & x_mask;; i = (i + 1) & x_mask) {
    if (x_slots[i].key == key) return &x_slots[i].count;
    if (x_slots[i].key == 0) {
      if (x_left == 0) return nullptr;
      --x_left;
      x_slots[i].key = key;
      return &x_slots[i].count;
    }
  }
}

FilterState::FilterState(const KernelFilter& filter) {
  const FilterSpec& spec = filter.spec();
  for (const LaunchId& id : filter.ids())
    if (!id.invocation.any() && !x_invocations) x_invocations = std::make_unique<CounterTable>(kMaxKeys);
  if (filter.is_stateful() && spec.mode != FilterMode::kGlobal)
    x_groups = std::make_unique<CounterTable>(kMaxKeys);
  x_done = spec.count && *spec.count == 0;
}

bool FilterState::group_of(const KernelFilter& filter, const LaunchView& launch, Group& out) noexcept {
  if (!x_groups) {
    out = {&x_seen, &x_matched};
    return true;
  }
  const bool per_gpu = filter.spec().mode == FilterMode::kPerGpu;
  const uint64_t group = per_gpu ? mix(0, launch.device) : mix_config(0, launch);
  enum : uint64_t { kSeen, kMatched };  // a group's counters in the table
  // Per GPU skip_before_match goes over all devices, as ncu's: "Effective launch filters for this mode are
  // --launch-count and --launch-skip".
  out = {per_gpu ? &x_seen : x_groups->find(mix(group, kSeen)), x_groups->find(mix(group, kMatched))};
  return out.seen && out.matched;
}

// The invocation counters advance for every launch that passed all earlier tests, whichever ID then selects
// it.
bool FilterState::invocation_matches(const KernelFilter& filter, const LaunchView& launch,
                                     const NameVerdict& name) noexcept {
  bool selected = false;
  uint64_t ids = filter.matching_ids(launch, name);
  for (size_t i = 0; ids != 0; ++i, ids >>= 1) {
    if (!(ids & 1)) continue;
    const LaunchId& id = filter.ids()[i];
    if (id.invocation.any()) {
      selected = true;
      continue;
    }
    uint64_t key = mix(i, uint64_t{0});
    if (id.counting == LaunchId::Counting::kNvprof) {
      key = mix(mix(mix(key, launch.context), launch.stream), name.demangled_key);
    } else {
      key = mix_config(mix(key, name.base_key), launch);
      // + 1: a context or stream 0 differs from none.
      if (!id.context.any()) key = mix(key, launch.context + 1ULL);
      if (!id.stream.any()) key = mix(key, launch.stream + 1ULL);
    }
    uint64_t* count = x_invocations->find(key);
    if (!count) {
      ++x_overflowed;
      continue;
    }
    if (id.invocation.matches(++*count)) selected = true;
  }
  return selected;
}

bool FilterState::is_its_turn(const FilterSpec& spec, uint64_t& matched) noexcept {
  const uint64_t index = matched++;
  const auto skip = static_cast<uint64_t>(spec.skip), every = static_cast<uint64_t>(spec.every);
  if (index < skip || (index - skip) % every != 0) return false;
  if (!spec.count) return true;
  const uint64_t nth = (index - skip) / every + 1, limit = static_cast<uint64_t>(*spec.count);
  if (nth > limit) return false;
  if (nth == limit) {
    // Groups still to come are known only where the devices are listed.
    ++x_groups_done;
    x_done = spec.mode == FilterMode::kGlobal || (spec.mode == FilterMode::kPerGpu && !spec.devices.empty() &&
                                                  x_groups_done == spec.devices.size());
  }
  return true;
}

bool FilterState::select(const KernelFilter& filter, const LaunchView& launch, const NameVerdict& name,
                         bool ranges_match) noexcept {
  const FilterSpec& spec = filter.spec();
  if (!filter.matches_device(launch.device)) return false;
  if (!filter.is_stateful()) {
    const bool selected = filter.matches_launch(launch, name, ranges_match);
    x_selected += selected;
    return selected;
  }
  // Without skip_before_match a launch that does not match leaves no trace.
  if (spec.skip_before_match == 0 && !filter.matches_launch(launch, name, ranges_match)) return false;
  Group group{};
  if (!group_of(filter, launch, group)) {
    ++x_overflowed;
    return false;
  }
  if (spec.skip_before_match != 0) {
    if (*group.seen < static_cast<uint64_t>(spec.skip_before_match)) {
      ++*group.seen;
      return false;
    }
    if (!filter.matches_launch(launch, name, ranges_match)) return false;
  }
  if (!filter.ids().empty() && !invocation_matches(filter, launch, name)) return false;
  const bool selected = is_its_turn(spec, *group.matched);
  x_selected += selected;
  return selected;
}

}  // namespace cuptiprof
