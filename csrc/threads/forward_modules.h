// Which module ran when an operator of forward began, by what its node of backward will be known by: torch's
// number of the thread and the sequence number. So backward, which runs on threads without Python, knows
// whose it is when it launches.
//
// Any thread writes and reads, without a lock and without allocating. The memory is taken once and touched as
// used; of two nodes that fall on one place the newer one stays, and the older is not found.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "threads/module_table.h"
#include "threads/open_operators.h"

namespace cuptiprof {

class ForwardModules {
 public:
  // Memory, once; touched as used. Throws Error.
  void map();
  // Nothing is known any more. Before a session.
  void forget() noexcept;

  // `module`: a number of g_module_table, kNoModule or kUnknownModule.
  void put(uint64_t thread, uint64_t sequence, uint32_t module) noexcept {
    if (!x_entries) return;
    Entry& e = x_entries[place_of(thread, sequence)];
    e.key.store(0, std::memory_order_relaxed);  // nobody reads the new key with the old module
    e.module.store(module, std::memory_order_release);
    e.key.store(key_of(thread, sequence), std::memory_order_release);
  }
  // kUnknownModule: its forward was not seen, or long ago.
  [[nodiscard]] uint32_t find(uint64_t thread, uint64_t sequence) const noexcept {
    if (!x_entries) return kUnknownModule;
    const Entry& e = x_entries[place_of(thread, sequence)];
    const uint64_t key = e.key.load(std::memory_order_acquire);
    const uint32_t module = e.module.load(std::memory_order_acquire);
    return key == key_of(thread, sequence) && e.key.load(std::memory_order_relaxed) == key ? module
                                                                                           : kUnknownModule;
  }
  [[nodiscard]] bool knows(uint64_t thread, uint64_t sequence) const noexcept {
    return x_entries && x_entries[place_of(thread, sequence)].key.load(std::memory_order_acquire) ==
                            key_of(thread, sequence);
  }

 private:
  static constexpr size_t kEntries = size_t{1} << 20;
  struct Entry {
    std::atomic<uint64_t> key{0};  // 0: free
    std::atomic<uint32_t> module{0};
  };
  static uint64_t key_of(uint64_t thread, uint64_t sequence) noexcept {
    return thread << 44 ^ (sequence & ((uint64_t{1} << 44) - 1)) ^ uint64_t { 1 } << 63;
  }
  static size_t place_of(uint64_t thread, uint64_t sequence) noexcept {
    return (sequence + thread * 0x9e3779b97f4a7c15ull) & (kEntries - 1);
  }

  Entry* x_entries = nullptr;
};

inline constinit ForwardModules g_forward_modules;

// Where Python stands (a node of g_frame_tree), with the module of the node of backward that runs on this
// thread in the place of the one around it.
uint32_t of_node(uint32_t frame, const NodeModule& node) noexcept;

}  // namespace cuptiprof
