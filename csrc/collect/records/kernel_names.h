// Copies of kernel names, made at launches, for records that are decoded after their module was unloaded.
//
// A record points at its name, in memory of which nobody says how long it lives. A launch callback shows the
// same name while it surely does. Unloads divide time into epochs; one address may stand for another text in
// each. Correlation IDs rise, so a record's tells in which epoch it was launched.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cuptiprof {

class KernelNames {
 public:
  // Before a session, while no callback comes: memory (once; touched as used), and nothing known. Throws
  // Error.
  void reset();

  // Launch callbacks. Cheap when the name was seen in this epoch; at first sight it is copied.
  void note(const char* name) noexcept {
    if (!name || !x_slots) return;
    Slot& slot = x_slots[slot_of(name)];
    if (slot.name.load(std::memory_order_acquire) == name &&
        slot.checked.load(std::memory_order_relaxed) == x_epoch.load(std::memory_order_relaxed)) [[likely]]
      return;
    look(name);
  }

  // A module goes, in the call of this correlation ID.
  void unloaded(uint32_t correlation) noexcept;

  // Unloads so far in this session.
  [[nodiscard]] uint32_t epoch() const noexcept { return x_epoch.load(std::memory_order_acquire); }
  // How many there had been when the call of this ID was made.
  [[nodiscard]] uint32_t epoch_of(uint32_t correlation) const noexcept;
  // What stood at `name` in that epoch, or in the nearest one before; null: it was never seen.
  [[nodiscard]] const char* find(const char* name, uint32_t epoch) const noexcept;
  // As find(), but null unless a launch showed it in that epoch or both before and after: there may be
  // another text by now, of a kernel that no launch shows.
  [[nodiscard]] const char* find_seen_in(const char* name, uint32_t epoch) const noexcept;

 private:
  static constexpr size_t kSlots = 1 << 15, kProbes = 32;
  static constexpr size_t kTextBytes = 8u << 20;
  static constexpr size_t kUnloads = 1024;  // of which the IDs are kept

  struct Slot {
    std::atomic<const char*> name{nullptr};
    std::atomic<uint32_t> checked{0};  // epoch in which the newest text was last compared
    std::atomic<uint32_t> newest{0};   // offset of a Version; 0: not there yet
  };
  struct Version {
    uint32_t older;  // offset; 0: none
    uint32_t epoch;  // first seen in
    // the text follows
  };
  static constexpr uint32_t kFirst = sizeof(Version);  // 0 is no offset
  static size_t slot_of(const char* name) noexcept {
    const auto address = reinterpret_cast<uint64_t>(name);
    return (address ^ address >> 15) * 0x9e3779b97f4a7c15ull >> 49;
  }
  const Version& version(uint32_t offset) const noexcept {
    return *reinterpret_cast<const Version*>(x_texts + offset);
  }
  static const char* text_of(const Version& v) noexcept { return reinterpret_cast<const char*>(&v + 1); }
  const Slot* slot(const char* name) const noexcept;  // null: never seen
  void look(const char* name) noexcept;
  uint32_t copy(const char* name, uint32_t epoch, uint32_t older) noexcept;

  Slot* x_slots = nullptr;
  char* x_texts = nullptr;
  std::atomic<uint32_t> x_used{kFirst};  // bytes of x_texts
  std::atomic<uint32_t> x_epoch{0}, x_unloads_begun{0};
  std::array<std::atomic<uint32_t>, kUnloads> x_unloads{};  // correlation IDs, by epoch
};

inline constinit KernelNames g_kernel_names;

}  // namespace cuptiprof
