// Paths of scopes as numbers: a node is its parent and a label. One of the process, made and read by any
// thread without a lock: launch callbacks say with one number what was open.
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
    for (uint32_t i = 0, at = slot_of(key); i < kProbes; ++i, at = (at + 1) % kSlots) {
      uint64_t seen = x_keys[at].load(std::memory_order_acquire);
      if (seen == 0 && x_keys[at].compare_exchange_strong(seen, key, std::memory_order_acq_rel)) {
        x_used.fetch_add(1, std::memory_order_relaxed);
        return at + 1;
      }
      if (seen == key) return at + 1;
    }
    g_scopes_lost.fetch_add(1, std::memory_order_relaxed);
    return parent;
  }

  // Labels from the outermost.
  [[nodiscard]] std::vector<uint32_t> labels(uint32_t node) const {
    std::vector<uint32_t> out;
    while (node != 0 && out.size() < kSlots) {
      const uint64_t key = x_keys[node - 1].load(std::memory_order_acquire);
      out.insert(out.begin(), static_cast<uint32_t>(key));
      node = static_cast<uint32_t>(key >> 32);
    }
    return out;
  }

  // Before a session, while nobody needs what earlier ones left: labels are not used again, so that it only
  // takes room.
  void make_room() noexcept {
    if (x_used.load(std::memory_order_relaxed) < kSlots / 4) return;
    for (auto& key : x_keys) key.store(0, std::memory_order_relaxed);
    x_used.store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr uint32_t kSlots = 1u << 17, kProbes = 32;
  static uint32_t slot_of(uint64_t key) noexcept {
    return static_cast<uint32_t>((key ^ key >> 29) * 0x9e3779b97f4a7c15ull >> 47);
  }
  std::array<std::atomic<uint64_t>, kSlots>
      x_keys{};  // parent << 32 | label; 0: free. A node is the place + 1
  std::atomic<uint32_t> x_used{0};
};

inline constinit ScopeTrie g_scope_trie;

}  // namespace cuptiprof
