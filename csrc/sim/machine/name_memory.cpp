#include "sim/machine/name_memory.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace sim {
namespace {

constexpr size_t kNameSlot = 512;  // bytes; longer names have memory of their own, which is not used again

struct Names {
  std::mutex mutex;  // guards the two below
  std::unordered_map<std::string, char*> kept;
  std::vector<char*> free;  // slots of kNameSlot bytes
  std::atomic<uint64_t> generation{0};
};

Names& names() {
  static Names* n = new Names;  // never destroyed (Machine::get)
  return *n;
}

}  // namespace

const char* intern(const char* text) {
  // Callers launch the same few names again and again from the same memory: remember the last ones by
  // pointer. The text is compared, since Python reuses memory.
  struct Known {
    const char* from = nullptr;
    const char* kept = nullptr;
    uint64_t generation = 0;
  };
  thread_local Known known[256];
  if (!text) text = "";
  Names& n = names();
  Known& k = known[(reinterpret_cast<uintptr_t>(text) >> 4) % 256];
  const uint64_t generation = n.generation.load(std::memory_order_acquire);
  if (k.from == text && k.generation == generation && std::strcmp(k.kept, text) == 0) return k.kept;
  const std::lock_guard lock(n.mutex);
  char*& slot = n.kept[text];
  if (!slot) {
    const size_t bytes = std::strlen(text) + 1;
    if (bytes <= kNameSlot && !n.free.empty()) {
      slot = n.free.back();
      n.free.pop_back();
    } else {
      slot = new char[std::max(bytes, kNameSlot)];  // lives as long as the process: records point at it
    }
    std::memcpy(slot, text, bytes);
  }
  k = {text, slot, generation};
  return slot;
}

void unload_names() {
  Names& n = names();
  const std::lock_guard lock(n.mutex);
  for (auto& [text, slot] : n.kept)
    if (text.size() < kNameSlot) n.free.push_back(slot);
  n.kept.clear();
  n.generation.fetch_add(1, std::memory_order_release);
}

}  // namespace sim
