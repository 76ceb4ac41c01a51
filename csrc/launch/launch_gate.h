// The first look at a launch while counters are armed: verdicts on names, on region paths and on lines that
// were reached before, read without a lock, a call or an observer. Most launches end here.
//
// Lives as long as the process, so that a launch callback may look at any time. An entry counts in its epoch
// only; a new session and the unloading of a module (whose names' addresses may be reused) begin another.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <span>

namespace cuptiprof {

class VerdictCache {
 public:
  static constexpr uint32_t kNone = 0xffffffff;

  [[nodiscard]] uint32_t find(uint64_t key, uint32_t epoch) const noexcept {
    for (uint32_t i = 0, at = slot_of(key); i < kProbes; ++i, at = (at + 1) % kSlots) {
      const uint64_t packed = x_slots[at].value.load(std::memory_order_acquire);
      const uint64_t seen = x_slots[at].key.load(std::memory_order_acquire);
      if (seen == 0) return kNone;
      if (seen != key) continue;
      // The value was this key's if it is still the same: while a slot is given to another key, its key is
      // kTaken, and an epoch in which it is given back brings another value.
      if (packed >> 32 != epoch || x_slots[at].value.load(std::memory_order_relaxed) != packed) return kNone;
      return static_cast<uint32_t>(packed);
    }
    return kNone;
  }

  // One writer at a time. Where the neighbourhood is full of this epoch's entries nothing is remembered.
  void put(uint64_t key, uint32_t epoch, uint32_t value) noexcept {
    for (uint32_t i = 0, at = slot_of(key); i < kProbes; ++i, at = (at + 1) % kSlots) {
      Slot& slot = x_slots[at];
      const uint64_t seen = slot.key.load(std::memory_order_relaxed);
      const bool stale = slot.value.load(std::memory_order_relaxed) >> 32 != epoch;
      if (seen != 0 && seen != key && !stale) continue;
      if (seen != 0 && seen != key) slot.key.store(kTaken, std::memory_order_release);
      slot.value.store(uint64_t{epoch} << 32 | value, std::memory_order_release);
      slot.key.store(key, std::memory_order_release);
      return;
    }
  }

 private:
  static constexpr uint32_t kSlots = 1 << 14, kProbes = 16;
  static constexpr uint64_t kTaken = 1;  // neither a pointer nor a hash
  static uint32_t slot_of(uint64_t key) noexcept {
    return static_cast<uint32_t>(key * 0x9e3779b97f4a7c15ull >> 50);
  }
  struct Slot {
    std::atomic<uint64_t> key{0};  // 0: free
    std::atomic<uint64_t> value{0};
  };
  std::array<Slot, kSlots> x_slots{};
};

class LaunchGate {
 public:
  // What a launch of this name or under this path is: refused, or worth asking the observer.
  static constexpr uint32_t kRefused = 0, kWanted = 1;

  uint32_t open(bool by_path, bool by_line, bool by_operators = false) noexcept {
    x_by_path.store(by_path, std::memory_order_relaxed);
    x_by_line.store(by_line, std::memory_order_relaxed);
    x_by_operators.store(by_operators, std::memory_order_relaxed);
    x_shut.fetch_and(~kClosed, std::memory_order_relaxed);
    return x_epoch.fetch_add(1) + 1;
  }
  void close() noexcept { x_shut.fetch_or(kClosed, std::memory_order_relaxed); }
  // No launch of the step that runs is wanted.
  void refuse_step(bool refused) noexcept {
    if (refused)
      x_shut.fetch_or(kStepRefused, std::memory_order_relaxed);
    else
      x_shut.fetch_and(~kStepRefused, std::memory_order_relaxed);
  }
  void forget() noexcept { x_epoch.fetch_add(1); }

  [[nodiscard]] bool is_open() const noexcept { return x_shut.load(std::memory_order_relaxed) == 0; }
  [[nodiscard]] bool by_path() const noexcept { return x_by_path.load(std::memory_order_relaxed); }
  [[nodiscard]] bool by_line() const noexcept { return x_by_line.load(std::memory_order_relaxed); }
  // Operators are among the scopes of paths.
  [[nodiscard]] bool by_operators() const noexcept { return x_by_operators.load(std::memory_order_relaxed); }
  [[nodiscard]] uint32_t epoch() const noexcept { return x_epoch.load(std::memory_order_relaxed); }
  [[nodiscard]] bool refuses_name(const char* symbol) const noexcept {
    return names.find(reinterpret_cast<uint64_t>(symbol), epoch()) == kRefused;
  }
  [[nodiscard]] bool refuses_path(std::span<const uint32_t> regions, std::span<const uint32_t> scopes,
                                  uint64_t start_end) const noexcept {
    const uint32_t known = paths.find(path_key(regions, scopes, start_end), epoch());
    return known != VerdictCache::kNone && (known & 1) == kRefused;
  }
  // A node of g_frame_tree, 0 included.
  [[nodiscard]] bool refuses_line(uint32_t frame) const noexcept {
    return lines.find(line_key(frame), epoch()) == kRefused;
  }
  static uint64_t line_key(uint32_t frame) noexcept { return uint64_t{frame} + 2; }
  // Of labels: open regions, then what is open beside; and of the process's open start/end ranges
  // (OpenStartEnd).
  static uint64_t path_key(std::span<const uint32_t> regions, std::span<const uint32_t> scopes,
                           uint64_t start_end) noexcept {
    uint64_t h = 0xcbf29ce484222325ull;
    for (const uint32_t r : regions) h = (h ^ r) * 0x100000001b3ull;
    if (!scopes.empty()) h *= 0x100000001b3ull;
    for (const uint32_t s : scopes) h = (h ^ s) * 0x100000001b3ull;
    h ^= h >> 29 ^ start_end;
    return h > 1 ? h : 2;
  }

  VerdictCache names;  // by address
  VerdictCache paths;  // by path_key: ID of the path << 1 | verdict
  VerdictCache lines;  // by line_key

 private:
  static constexpr uint32_t kClosed = 1, kStepRefused = 2;
  std::atomic<uint32_t> x_shut{kClosed};  // why no launch is let through; 0: the gate is open
  std::atomic<bool> x_by_path{false}, x_by_line{false}, x_by_operators{false};
  std::atomic<uint32_t> x_epoch{1};
};

inline constinit LaunchGate g_launch_gate;

}  // namespace cuptiprof
