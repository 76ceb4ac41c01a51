// Stacks of Python code as numbers: a node is a line of a function and the node of its caller. One tree of
// the process, made and read by any thread without a lock and without allocating: launch callbacks say with
// one number where in the program they are.
//
// Who walks the interpreter's frames (bindings/frames) finds a stack that was seen before by one look-up of
// its hash. At first sight its names are copied: the code may be gone when somebody reads them.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/append_set.h"

namespace cuptiprof {

// What g_frame_source gives: a node of g_frame_tree.
enum class FrameLevel : uint8_t {
  kOff,
  kLine,   // the innermost line of the user's code alone
  kStack,  // the whole stack
};
inline std::atomic<uint64_t> g_frames_lost{0};  // launches whose line, stack or module found no room

struct FramePlace {
  uint32_t parent = 0;  // node of the caller; 0: none
  uint32_t line = 0;    // 0: the code has none here
  uint32_t first_line = 0;
  bool is_user = false;  // not of an installed package
  std::string_view file, function;
};

// Function of the tree: FrameTree::function().
struct FunctionPlace {
  std::string_view file, name;
  uint32_t first_line = 0;
};

class FrameTree {
 public:
  // Memory, once; touched as used. Throws Error.
  void map();
  // Nothing is known any more. Before a session, while no callback comes.
  void forget() noexcept;

  // The node of the stack of this hash; 0: not seen yet.
  [[nodiscard]] uint32_t find(uint64_t hash) const noexcept {
    for (uint32_t i = 0, at = slot_of(hash, kStacks); i < kProbes; ++i, at = (at + 1) % kStacks) {
      const uint64_t seen = x_stacks[at].hash.load(std::memory_order_acquire);
      if (seen == hash) return x_stacks[at].node.load(std::memory_order_acquire);
      if (seen == 0) return 0;
    }
    return 0;
  }
  // Where the neighbourhood is full nothing is remembered: such a stack is put together each time.
  void remember(uint64_t hash, uint32_t node) noexcept;

  // Function of the living code object at this address, and how often one died there: a number that no other
  // code object has. Its function (function_of) is 0 where none is known.
  [[nodiscard]] uint64_t code(const void* address) const noexcept {
    const auto key = reinterpret_cast<uint64_t>(address);
    for (uint32_t i = 0, at = slot_of(key, kCodes); i < kProbes; ++i, at = (at + 1) % kCodes) {
      const uint64_t seen = x_codes[at].address.load(std::memory_order_acquire);
      if (seen == key) return x_codes[at].state.load(std::memory_order_acquire);
      if (seen == 0) return 0;
    }
    return 0;
  }
  static constexpr uint32_t function_of(uint64_t code) noexcept {
    return static_cast<uint32_t>(code) & ~kUserBit;
  }
  static constexpr bool is_user(uint64_t code) noexcept { return code & kUserBit; }
  // Returns what code() then does; function 0: no room.
  uint64_t add_code(const void* address, std::string_view file, std::string_view function,
                    uint32_t first_line, bool is_user) noexcept;
  // The code object at this address dies; another may come to lie there.
  void code_dies(const void* address) noexcept;
  // A code object that was known died at this address, or at one that looks like it.
  [[nodiscard]] bool is_reused(const void* address) const noexcept {
    if (!x_any_reused.load(std::memory_order_relaxed)) [[likely]]
      return false;
    const uint32_t bit = slot_of(reinterpret_cast<uint64_t>(address), kReusedBits);
    return x_reused[bit / 64].load(std::memory_order_relaxed) >> bit % 64 & 1;
  }

  // The node of this function at this line, called from `parent` (0: from nowhere). 0: no room.
  uint32_t child(uint32_t parent, uint32_t function, uint32_t line) noexcept;
  // The function itself, as code of no address.
  uint32_t function(std::string_view file, std::string_view name, uint32_t first_line, bool is_user) noexcept;

  [[nodiscard]] FunctionPlace function_at(uint32_t function) const noexcept;

  // A node on top of a stack's (0: none is known) that says which of PyTorch's modules (g_module_table) runs,
  // too. 0: no room. What else is asked of nodes is asked of those of Python (python_of).
  uint32_t with_module(uint32_t stack, uint32_t module) noexcept { return child(stack, kModule, module); }
  [[nodiscard]] uint32_t module_of(uint32_t node) const noexcept {
    return node != 0 && x_nodes.at(node).function == kModule ? x_nodes.at(node).line : 0;
  }
  [[nodiscard]] uint32_t python_of(uint32_t node) const noexcept {
    return node != 0 && x_nodes.at(node).function == kModule ? x_nodes.at(node).parent : node;
  }

  [[nodiscard]] FramePlace place(uint32_t node) const noexcept;
  [[nodiscard]] uint32_t parent(uint32_t node) const noexcept { return x_nodes.at(node).parent; }
  [[nodiscard]] uint32_t size() const noexcept { return x_nodes.size(); }

 private:
  static constexpr uint32_t kStacks = 1u << 19, kCodes = 1u << 16, kNodes = 1u << 19, kFunctions = 1u << 16;
  static constexpr uint32_t kTexts = 1u << 16, kTextBytes = 16u << 20, kMaxText = 4096, kProbes = 32;
  static constexpr uint32_t kReusedBits = 1u << 15;
  static constexpr uint32_t kUserBit = 1u << 31;
  static constexpr uint32_t kModule = ~0u;  // no function

  struct Stack {
    std::atomic<uint64_t> hash{0};  // 0: free
    std::atomic<uint32_t> node{0};  // 0: being put together
  };
  struct Code {
    std::atomic<uint64_t> address{0};  // 0: free
    std::atomic<uint64_t> state{0};    // deaths here << 32 | user bit | function; function 0: dead
  };
  struct Function {
    uint32_t file, name, first_line, user;
  };
  struct Node {
    uint32_t parent, function, line;
  };
  struct Text {
    uint32_t offset, length;
  };
  static uint32_t slot_of(uint64_t key, uint32_t slots) noexcept {
    return static_cast<uint32_t>((key ^ key >> 29) * 0x9e3779b97f4a7c15ull >> 40) & (slots - 1);
  }
  static constexpr size_t kStackBytes = kStacks * sizeof(Stack), kCodeBytes = kCodes * sizeof(Code);
  static constexpr size_t kBytes = kStackBytes + kCodeBytes + AppendSet<Function>::bytes(kFunctions) +
                                   AppendSet<Node>::bytes(kNodes) + AppendSet<Text>::bytes(kTexts) +
                                   kTextBytes;

  void place_sets() noexcept;
  uint32_t text(std::string_view text) noexcept;
  std::string_view view(uint32_t text) const noexcept;

  Stack* x_stacks = nullptr;
  Code* x_codes = nullptr;
  char* x_texts = nullptr;
  AppendSet<Function> x_functions;
  AppendSet<Node> x_nodes;
  AppendSet<Text> x_text_set;
  std::atomic<uint32_t> x_text_used{0};
  std::array<std::atomic<uint64_t>, kReusedBits / 64> x_reused{};
  std::atomic<bool> x_any_reused{false};
};

inline constinit FrameTree g_frame_tree;

}  // namespace cuptiprof
