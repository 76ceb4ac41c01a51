// A thread's open operators of PyTorch as they are now: what a launch is inside of, and what the end of an
// operator ends.
//
// Written by the owning thread only, in torch's callbacks and read in CUPTI's. Others look an operator up
// that ends on their thread (`id_of`), and leave a note that it did (`ended_elsewhere`), which the owner
// follows when it looks next. Nothing here locks or allocates.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <utility>

#include "threads/module_table.h"
#include "threads/scope_trie.h"

namespace cuptiprof {

// What threads noted under an older number is forgotten (OpenOperators::forget_all).
inline std::atomic<uint32_t> g_operators_epoch{1};

// Which of PyTorch's modules a node of backward works for.
struct NodeModule {
  // That of the operator which made it (ForwardModules::find); 0: it is no such node.
  uint32_t module = 0;
  uint32_t around = 0;  // what runs on this thread when the node begins: work of this one is the node's
};

// What an operator makes: nodes of the numbers from `first` on, in the module that ran when it began.
struct NodesMade {
  uint64_t first = 0;
  uint32_t module = 0;  // 0: nobody asks
};

// In the place of a module: the node that begins next inside says which.
inline constexpr uint32_t kNodeToCome = ~0u - 2;

class OpenOperators {
 public:
  static constexpr uint32_t kMax = 128;  // deeper ones are not recorded

  static void forget_all() noexcept { g_operators_epoch.fetch_add(1); }

  // Owner. Whether there is room for one more.
  [[nodiscard]] bool has_room() noexcept {
    settle();
    return depth() < kMax;
  }
  // Owner, where there is room. `call`: which operator it is, as long as it runs; `id`: of its event, 0:
  // none; `of`: of a node of backward.
  void push(uint64_t call, uint32_t label, uint64_t id, const NodeModule& of = {},
            const NodesMade& makes = {}) noexcept {
    const uint32_t n = depth();
    put(n, call, id, label, of, makes);
    x_depth.store(n + 1, std::memory_order_release);
  }
  // Owner: the operator ends. False: it is not open here. `id`: of its event.
  bool pop(uint64_t call, uint64_t* id, NodesMade* made) noexcept {
    settle();
    const uint32_t n = depth();
    uint32_t at = n;
    do {
      if (at-- == 0) return false;
    } while (x_entries[at].call.load(std::memory_order_relaxed) != call);
    *id = x_entries[at].id.load(std::memory_order_relaxed);
    *made = x_entries[at].makes;
    take_out(at);
    return true;
  }
  // Owner: how many with an event were open when a session began, since it was last asked: their ends are
  // nobody's, and write none.
  [[nodiscard]] uint32_t take_forgotten() noexcept { return std::exchange(x_forgotten, 0); }

  // Any other thread: its event's ID, where it is open here.
  bool id_of(uint64_t call, uint64_t* id) const noexcept {
    if (x_epoch.load(std::memory_order_acquire) != epoch()) return false;
    for (uint32_t i = std::min(x_depth.load(std::memory_order_acquire), kMax); i-- > 0;) {
      const Entry& e = x_entries[i];
      if (e.call.load(std::memory_order_acquire) != call) continue;
      *id = e.id.load(std::memory_order_acquire);
      // An entry is `call` 0 while another one is moved into its place.
      if (e.call.load(std::memory_order_relaxed) == call) return true;
    }
    return false;
  }
  // Any other thread. False: there is no room for the note.
  bool ended_elsewhere(uint64_t call) noexcept {
    for (auto& note : x_ended) {
      uint64_t free = 0;
      if (!note.compare_exchange_strong(free, call, std::memory_order_release)) continue;
      x_any_ended.store(true, std::memory_order_release);
      return true;
    }
    return false;
  }

  // Owner: node of the trie of what is open, inside `around`. Operators in which nothing is launched are
  // never looked up.
  [[nodiscard]] uint32_t node(uint32_t around) noexcept {
    settle();
    const uint32_t n = depth();
    const uint32_t generation = g_scope_trie.generation();
    if (around != x_around || generation != x_generation) x_known = 0;
    x_around = around;
    x_generation = generation;
    for (; x_known < n; ++x_known)
      x_nodes[x_known] = g_scope_trie.child(x_known == 0 ? around : x_nodes[x_known - 1], label(x_known));
    return n == 0 ? around : x_nodes[n - 1];
  }
  // Owner: labels from the outermost into `out`, which has room for kMax. Returns how many.
  uint32_t labels(uint32_t* out) noexcept {
    settle();
    const uint32_t n = depth();
    for (uint32_t i = 0; i < n; ++i) out[i] = label(i);
    return n;
  }
  // Owner: the engine's work around a node (kNodeToCome), the innermost entry, is the node's.
  void node_comes(uint32_t module) noexcept {
    settle();
    const uint32_t n = depth();
    if (n != 0 && x_entries[n - 1].module.load(std::memory_order_relaxed) == kNodeToCome)
      x_entries[n - 1].module.store(module, std::memory_order_relaxed);
  }
  // Owner: of the innermost node of backward. One that is to come: nobody knows yet.
  [[nodiscard]] NodeModule node_module() const noexcept {
    if (x_epoch.load(std::memory_order_relaxed) != epoch()) return {};
    for (uint32_t i = depth(); i-- > 0;)
      if (const uint32_t module = x_entries[i].module.load(std::memory_order_relaxed); module != 0)
        return {module == kNodeToCome ? kUnknownModule : module,
                x_entries[i].around.load(std::memory_order_relaxed)};
    return {};
  }

  // Any thread: as LaunchScopes::each_label.
  void each_label(auto&& visit) const {
    for (uint32_t i = kMax; i-- > 0;)
      if (const uint32_t of = x_entries[i].label.load(std::memory_order_acquire); of != 0) visit(of);
  }

  // When the slot gets a new owner.
  void clear() noexcept {
    x_depth.store(0, std::memory_order_release);
    x_known = 0;
    drop_notes();
  }

 private:
  struct Entry {
    std::atomic<uint64_t> call{0};
    std::atomic<uint64_t> id{0};
    std::atomic<uint32_t> label{0}, module{0}, around{0};
    NodesMade makes;  // the owner's alone
  };
  static uint32_t epoch() noexcept { return g_operators_epoch.load(std::memory_order_relaxed); }
  uint32_t depth() const noexcept { return x_depth.load(std::memory_order_relaxed); }
  uint32_t label(uint32_t i) const noexcept { return x_entries[i].label.load(std::memory_order_relaxed); }

  void put(uint32_t at, uint64_t call, uint64_t id, uint32_t label, const NodeModule& of,
           const NodesMade& makes) noexcept {
    Entry& e = x_entries[at];
    e.call.store(0, std::memory_order_release);
    e.id.store(id, std::memory_order_release);
    e.label.store(label, std::memory_order_relaxed);
    e.module.store(of.module, std::memory_order_relaxed);
    e.around.store(of.around, std::memory_order_relaxed);
    e.makes = makes;
    e.call.store(call, std::memory_order_release);
    x_known = std::min(x_known, at);
  }
  void take_out(uint32_t at) noexcept {
    const uint32_t n = depth();
    for (uint32_t i = at; i + 1 < n; ++i) {
      const Entry& from = x_entries[i + 1];
      put(i, from.call.load(std::memory_order_relaxed), from.id.load(std::memory_order_relaxed),
          from.label.load(std::memory_order_relaxed),
          {from.module.load(std::memory_order_relaxed), from.around.load(std::memory_order_relaxed)},
          from.makes);
    }
    x_depth.store(n - 1, std::memory_order_release);
    x_known = std::min(x_known, at);
  }
  // What is of an earlier session, and what ended on other threads, goes.
  void settle() noexcept {
    if (x_epoch.load(std::memory_order_relaxed) != epoch()) [[unlikely]] {
      for (uint32_t i = 0; i < depth(); ++i)
        x_forgotten += x_entries[i].id.load(std::memory_order_relaxed) != 0;
      clear();
      x_epoch.store(epoch(), std::memory_order_release);
    }
    if (x_any_ended.load(std::memory_order_relaxed)) [[unlikely]]
      follow_notes();
  }
  void follow_notes() noexcept {
    x_any_ended.store(false, std::memory_order_relaxed);
    for (auto& note : x_ended) {
      const uint64_t call = note.exchange(0, std::memory_order_acquire);
      for (uint32_t at = call ? depth() : 0; at-- > 0;) {
        if (x_entries[at].call.load(std::memory_order_relaxed) != call) continue;
        take_out(at);
        break;
      }
    }
  }
  void drop_notes() noexcept {
    x_any_ended.store(false, std::memory_order_relaxed);
    for (auto& note : x_ended) note.store(0, std::memory_order_relaxed);
  }

  std::atomic<uint32_t> x_epoch{0};  // an older one: nothing is open
  std::atomic<uint32_t> x_depth{0};
  std::atomic<bool> x_any_ended{false};
  uint32_t x_known = 0;                     // so many of x_nodes are those of the entries
  uint32_t x_around = 0, x_generation = 0;  // of x_nodes
  uint32_t x_forgotten = 0;
  std::array<std::atomic<uint64_t>, 8> x_ended{};  // calls; 0: free
  uint32_t x_nodes[kMax] = {};
  Entry x_entries[kMax];
};

}  // namespace cuptiprof
