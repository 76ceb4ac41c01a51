// What of RegionTracker makes names of scopes age: sessions without end, in programs that make new names
// without end. What is open keeps its name; so does what was launched, as long as half of the room for paths
// does not go to newer ones.
#include <algorithm>
#include <limits>
#include <unordered_set>

#include "collect/regions/region_tracker.h"
#include "collect/regions/scope_labels.h"

namespace cuptiprof {

bool RegionTracker::wants_to_age_scopes() const {
  return x_ages && (wants_to_age_labels() || g_scope_trie.wants_to_age());
}

void RegionTracker::each_open_node(auto&& visit) {
  for (ThreadState& t : x_threads) {
    for (auto& [task, stack] : t.stacks)
      for (OpenRegion& r : stack) visit(r.node);
  }
  if (x_operators) x_operators->each_region(visit);
  // Where graphs were captured: they are launched as long as the program likes.
  if (x_graphs) x_graphs->each_site([&](CaptureSite& site) { visit(site.node); });
}

void RegionTracker::age_paths(size_t most) {
  // Regions that were handed on: what is no longer open has no work to come.
  std::unordered_set<RegionFrame*> frames;
  const auto add = [&frames](const Frame& frame) {
    for (RegionFrame* f = frame.get(); f && frames.insert(f).second; f = f->parent.get()) {
    }
  };
  for (const Token& token : x_tokens) add(token.frame);
  for (const ThreadState& t : x_threads)
    for (const auto& [task, stack] : t.stacks)
      for (const OpenRegion& r : stack) add(r.frame);
  std::vector<uint32_t> open;
  each_open_node([&open](uint32_t node) { open.push_back(node); });
  for (const RegionFrame* f : frames)
    if (f->end == std::numeric_limits<int64_t>::max()) open.push_back(f->node);

  const std::vector<uint32_t> now = x_paths.age(open, most);
  each_open_node([&now](uint32_t& node) { node = now[node]; });
  for (RegionFrame* f : frames) f->node = now[f->node];
  x_calls.each_call([&now](CallSite& site, uint32_t*) { site.node = now[site.node]; });
}

void RegionTracker::age_start_end_sets(size_t most) {
  const std::vector<uint32_t> now = x_markers.age(most);
  x_calls.each_call([&now](CallSite&, uint32_t* set) {
    if (set) *set = now[*set];
  });
  ++x_set_generation;
}

std::vector<uint32_t> RegionTracker::labels_in_use() {
  std::vector<uint32_t> used = g_scope_trie.labels_in_use();
  const auto add = [&used](uint32_t label) { used.push_back(label); };
  x_paths.each_label(add);
  x_markers.each_label(add);
  if (x_operators) x_operators->each_label(add);
  for (ThreadState& t : x_threads)
    for (auto& [task, stack] : t.stacks)
      for (const OpenRegion& r : stack) add(r.label);
  for (uint32_t i = 0; i < thread_slot_count(); ++i) {
    thread_slot(i).scopes.each_label(add);
    thread_slot(i).operators.each_label(add);
  }
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  return used;
}

void RegionTracker::age_scopes() {
  // Of the generation that goes, what graphs were captured in is carried over.
  std::vector<std::vector<uint32_t>> captured;
  if (x_graphs)
    x_graphs->each_site(
        [&](CaptureSite& site) { captured.push_back(g_scope_trie.labels(site.origin.scopes)); });
  g_scope_trie.age();
  size_t next = 0;
  if (x_graphs)
    x_graphs->each_site([&](CaptureSite& site) {
      site.origin.scopes = 0;
      for (const uint32_t label : captured[next++])
        site.origin.scopes = g_scope_trie.child(site.origin.scopes, label);
    });
  if (x_operators) x_operators->next_generation();
  std::vector<uint32_t> used = labels_in_use();
  // Long names: fewer paths, so that there is room for new ones.
  for (size_t most = x_paths.max_nodes() / 2; most > 0 && !is_room_for_labels(used); most /= 2) {
    age_paths(most);
    age_start_end_sets(most);
    used = labels_in_use();
  }
  age_labels(used);
}

}  // namespace cuptiprof
