// Paths of scopes as numbers: a node is its parent and a label. One of the process, made and read by any
// thread without a lock: launch callbacks say with one number what was open.
//
// Nodes age by generations, of which the last two are known. A node's number says its generation, so that
// one which is too old is not taken for another; whoever keeps numbers makes them anew in each generation.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

namespace cuptiprof {

inline std::atomic<uint64_t> g_scopes_lost{0};  // scopes for which there was no room: as those around them

class ScopeTrie {
 public:
  // The node of this label inside `parent` (0: none). Where there is no room, the parent, which is counted.
  [[nodiscard]] uint32_t child(uint32_t parent, uint32_t label) noexcept {
    const uint64_t key = uint64_t{parent} << 32 | label;  // labels are not 0
    // A path is of one generation, whatever begins on the way.
    const uint32_t generation = parent != 0 ? parent >> kSlotBits : this->generation();
    auto& keys = x_keys[generation & 1];
    for (uint32_t i = 0, at = slot_of(key); i < kProbes; ++i, at = (at + 1) % kSlots) {
      uint64_t seen = keys[at].load(std::memory_order_acquire);
      if (seen == 0 && keys[at].compare_exchange_strong(seen, key, std::memory_order_acq_rel)) {
        x_used.fetch_add(1, std::memory_order_relaxed);
        return generation << kSlotBits | at;
      }
      if (seen == key) return generation << kSlotBits | at;
    }
    g_scopes_lost.fetch_add(1, std::memory_order_relaxed);
    return parent;
  }

  [[nodiscard]] uint32_t generation() const noexcept { return x_generation.load(std::memory_order_acquire); }
  // Whether the node's labels are still known.
  [[nodiscard]] bool holds(uint32_t node) const noexcept {
    const uint32_t of = node >> kSlotBits;
    return node == 0 || of == generation() || of == x_last.load(std::memory_order_relaxed);
  }

  // Labels from the outermost; none of a node that is too old.
  [[nodiscard]] std::vector<uint32_t> labels(uint32_t node) const {
    std::vector<uint32_t> out;
    while (node != 0 && holds(node) && out.size() < kSlots) {
      const uint64_t key = x_keys[node >> kSlotBits & 1][node % kSlots].load(std::memory_order_acquire);
      out.insert(out.begin(), static_cast<uint32_t>(key));
      node = static_cast<uint32_t>(key >> 32);
    }
    return out;
  }

  // Labels of all nodes of this generation, some of them more than once.
  [[nodiscard]] std::vector<uint32_t> labels_in_use() const {
    std::vector<uint32_t> out;
    if (x_used.load(std::memory_order_relaxed) == 0) return out;
    for (const auto& key : x_keys[generation() & 1])
      if (const uint64_t seen = key.load(std::memory_order_acquire); seen != 0)
        out.push_back(static_cast<uint32_t>(seen));
    return out;
  }

  [[nodiscard]] bool wants_to_age() const noexcept {
    return x_used.load(std::memory_order_relaxed) >= kSlots / 4;
  }
  // A new generation begins: nodes of those before the last one are too old from now on. One thread at a
  // time; others may be making nodes: those that they make of a generation which ends here are too old, too.
  void age() noexcept {
    const uint32_t last = generation();
    // Of the other half; 0 would make a node that is none.
    const uint32_t next = last == kGenerations - 1 ? 2 : last + 1;
    x_last.store(last, std::memory_order_relaxed);
    for (auto& key : x_keys[next & 1]) key.store(0, std::memory_order_relaxed);
    x_used.store(0, std::memory_order_relaxed);
    x_generation.store(next, std::memory_order_release);
  }

 private:
  static constexpr uint32_t kSlotBits = 17, kSlots = 1u << kSlotBits, kProbes = 32;
  static constexpr uint32_t kGenerations = 1u << (32 - kSlotBits);
  static uint32_t slot_of(uint64_t key) noexcept {
    return static_cast<uint32_t>((key ^ key >> 29) * 0x9e3779b97f4a7c15ull >> 47);
  }
  // By generation: parent << 32 | label; 0: free. A node is its generation and the place.
  std::array<std::array<std::atomic<uint64_t>, kSlots>, 2> x_keys{};
  std::atomic<uint32_t> x_used{0};  // of this generation
  std::atomic<uint32_t> x_generation{1}, x_last{0};
};

inline constinit ScopeTrie g_scope_trie;

}  // namespace cuptiprof
