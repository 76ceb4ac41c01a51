// A thread's open scopes of the level "launch": known at launches, without events and times of their own.
//
// Used by the owning thread only, in launch callbacks too; others look at its labels.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>

#include "threads/scope_trie.h"

namespace cuptiprof {

// What threads noted under an older number is forgotten (LaunchScopes::forget_all).
inline std::atomic<uint32_t> g_launch_scopes_epoch{1};

class LaunchScopes {
 public:
  static constexpr uint32_t kMax = 64;  // deeper ones are not seen

  static void forget_all() noexcept { g_launch_scopes_epoch.fetch_add(1); }

  // `stack`: which of the thread's stacks it goes on (its source and domain); each is popped by itself.
  void push(uint32_t label, uint32_t stack) noexcept {
    if (x_epoch != epoch()) {
      x_epoch = epoch();
      x_depth = x_known = 0;
    }
    if (x_depth < kMax) {
      std::atomic_ref(x_labels[x_depth]).store(label, std::memory_order_relaxed);
      x_stacks[x_depth] = stack;
    }
    ++x_depth;
  }

  // The newest of that stack goes, if there is one: it may have begun before the session.
  void pop(uint32_t stack) noexcept {
    if (x_epoch != epoch() || x_depth == 0) return;
    if (x_depth > kMax) {  // one of those that found no room
      --x_depth;
      return;
    }
    uint32_t at = x_depth;
    do {
      if (at-- == 0) return;
    } while (x_stacks[at] != stack);
    for (uint32_t i = at; i + 1 < x_depth; ++i)
      std::atomic_ref(x_labels[i]).store(x_labels[i + 1], std::memory_order_relaxed);
    std::copy(x_stacks + at + 1, x_stacks + x_depth, x_stacks + at);
    --x_depth;
    x_known = std::min(x_known, at);
  }

  // Of the trie: what is open now. Scopes in which nothing is launched are never looked up.
  [[nodiscard]] uint32_t node() noexcept {
    const uint32_t n = static_cast<uint32_t>(labels().size());
    if (n == 0) return 0;
    if (const uint32_t now = g_scope_trie.generation(); now != x_generation) [[unlikely]]
      x_generation = now, x_known = 0;
    for (; x_known < n; ++x_known)
      x_nodes[x_known] = g_scope_trie.child(x_known == 0 ? 0 : x_nodes[x_known - 1], x_labels[x_known]);
    return x_nodes[n - 1];
  }

  // From the outermost.
  [[nodiscard]] std::span<const uint32_t> labels() const noexcept {
    return {x_labels, x_epoch == epoch() ? std::min(x_depth, kMax) : 0};
  }

  // Any thread: labels that may be open here, also some that are not any more. What was open before the call
  // and stays so is among them: entries only move down.
  void each_label(auto&& visit) {
    for (uint32_t i = kMax; i-- > 0;)
      if (const uint32_t label = std::atomic_ref(x_labels[i]).load(std::memory_order_acquire); label != 0)
        visit(label);
  }

  // When the slot gets a new owner.
  void clear() noexcept { x_depth = x_known = 0; }

 private:
  static uint32_t epoch() noexcept { return g_launch_scopes_epoch.load(std::memory_order_relaxed); }

  uint32_t x_epoch = 0;  // an older one: nothing is open
  uint32_t x_depth = 0;
  uint32_t x_known = 0;       // so many of x_nodes are those of x_labels
  uint32_t x_generation = 0;  // of x_nodes
  uint32_t x_labels[kMax] = {}, x_stacks[kMax] = {}, x_nodes[kMax] = {};
};

}  // namespace cuptiprof
