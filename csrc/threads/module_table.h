// PyTorch's modules that launch work, as numbers: which object lay at an address when a launch callback saw
// it there. One table of the process, made and read by any thread without a lock and without allocating.
//
// A number is one life: where an object dies (who holds the GIL says so, bindings/frames/module_objects.cpp)
// and another comes to lie, that has a number of its own. Names come later, under the GIL.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cuptiprof {

struct ModuleRecord {
  std::atomic<const void*> address{nullptr};
  std::atomic<const void*> type{nullptr};  // of the object
  std::atomic<uint32_t> name{0};           // function of g_frame_tree (ModuleName); 0: not named yet
  std::atomic<uint32_t> used{0};           // when it was first seen at a launch, in the order of such events
  std::atomic<uint32_t> died{0};           // the same, of its death; 0: it lives
  std::atomic<uint32_t> is_moved{0};       // 1: it was found somewhere else later
};

// In the place of a number: what is certain is that no module ran, or that nobody knows which.
inline constexpr uint32_t kNoModule = ~0u - 1, kUnknownModule = ~0u;

// What a module is called: its place in the outermost module around it.
struct ModuleName {
  std::string_view root_class;  // name of that one's class
  std::string_view path;        // "layers.3.attn"; empty: it is the outermost itself
  uint32_t root = 0;            // number of the outermost one
};

class ModuleTable {
 public:
  // Memory, once; touched as used. Throws Error.
  void map();
  // Nothing is known any more. Before a session, while no callback comes.
  void forget() noexcept;

  // Number of the object that lives at this address; 0: none is known.
  [[nodiscard]] uint32_t find(const void* address) const noexcept {
    if (!x_slots) return 0;
    const auto key = reinterpret_cast<uint64_t>(address);
    for (uint32_t i = 0, at = slot_of(key); i < kProbes; ++i, at = (at + 1) % kSlots) {
      const uint64_t seen = x_slots[at].address.load(std::memory_order_acquire);
      if (seen == key) return x_slots[at].number.load(std::memory_order_acquire);
      if (seen == 0) return 0;
    }
    return 0;
  }
  // The same, known from now on. 0: no room. What is known of one of another type died untold.
  uint32_t number(const void* address, const void* type) noexcept;
  // Seen at a launch. True: for the first time, and it has no name.
  bool use(uint32_t number) noexcept;
  // The object at this address dies; another may come to lie there.
  void dies(const void* address) noexcept;

  // With the GIL.
  void set_name(uint32_t number, const ModuleName& name) noexcept;
  [[nodiscard]] bool is_named(uint32_t number) const noexcept {
    return number < kRecords && x_records[number].name.load(std::memory_order_acquire) != 0;
  }
  [[nodiscard]] ModuleName name(uint32_t number) const noexcept;
  [[nodiscard]] ModuleRecord& record(uint32_t number) noexcept { return x_records[number]; }
  // Numbers are 1 to this.
  [[nodiscard]] uint32_t size() const noexcept { return x_next.load(std::memory_order_acquire) - 1; }
  // Since it was last forgotten, one without a name was seen at a launch.
  [[nodiscard]] bool has_nameless() const noexcept { return x_nameless.load(std::memory_order_relaxed); }
  void forget_nameless() noexcept { x_nameless.store(false, std::memory_order_relaxed); }

 private:
  static constexpr uint32_t kSlots = 1u << 17, kRecords = 1u << 20, kProbes = 32;
  struct Slot {
    std::atomic<uint64_t> address{0};  // 0: free
    std::atomic<uint32_t> number{0};   // 0: dead
  };
  static uint32_t slot_of(uint64_t key) noexcept {
    return static_cast<uint32_t>((key ^ key >> 29) * 0x9e3779b97f4a7c15ull >> 40) & (kSlots - 1);
  }
  static constexpr size_t kBytes = kSlots * sizeof(Slot) + size_t{kRecords} * sizeof(ModuleRecord);

  Slot* x_slots = nullptr;
  ModuleRecord* x_records = nullptr;
  std::atomic<uint32_t> x_next{1};
  std::atomic<uint32_t> x_events{0};
  std::atomic<bool> x_nameless{false};
};

inline constinit ModuleTable g_module_table;

}  // namespace cuptiprof
