#include "base/string_table.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

namespace cuptiprof {
namespace {

constexpr size_t kBlock = 64 * 1024;

uint32_t hash_of(std::string_view text) { return static_cast<uint32_t>(std::hash<std::string_view>{}(text)); }

}  // namespace

StringTable::StringTable() {
  x_slots.assign(1024, 0);
  intern("");
}

uint32_t StringTable::intern(std::string_view text, size_t max_bytes) {
  const uint32_t hash = hash_of(text);
  const size_t mask = x_slots.size() - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    const uint32_t slot = x_slots[i];
    if (slot == 0) {
      if (x_bytes + text.size() > max_bytes) return kNone;
      const auto id = static_cast<uint32_t>(x_strings.size());
      x_strings.emplace_back(store(text), text.size());
      x_hashes.push_back(hash);
      x_slots[i] = id + 1;
      if (x_strings.size() * 2 > x_slots.size()) grow();
      x_bytes = x_block_bytes + x_strings.capacity() * sizeof(std::string_view) +
                (x_hashes.capacity() + x_slots.size()) * sizeof(uint32_t);
      return id;
    }
    if (x_hashes[slot - 1] == hash && x_strings[slot - 1] == text) return slot - 1;
  }
}

size_t StringTable::bytes_with(size_t more) const {
  const size_t count = x_strings.size() + more;
  const size_t views = std::max(x_strings.capacity(), std::bit_ceil(count));
  const size_t hashes = std::max(x_hashes.capacity(), std::bit_ceil(count));
  const size_t slots = std::max(x_slots.size(), std::bit_ceil(2 * count));
  return x_block_bytes + x_block_bytes / x_strings.size() * more + views * sizeof(std::string_view) +
         (hashes + slots) * sizeof(uint32_t);
}

void StringTable::grow() {
  std::vector<uint32_t> slots(x_slots.size() * 2, 0);
  const size_t mask = slots.size() - 1;
  for (uint32_t id = 0; id < x_hashes.size(); ++id) {
    size_t i = x_hashes[id] & mask;
    while (slots[i] != 0) i = (i + 1) & mask;
    slots[i] = id + 1;
  }
  x_slots = std::move(slots);
}

const char* StringTable::store(std::string_view text) {
  const size_t need = text.size() + 1;
  if (need > x_block_left) {
    const size_t block = need > kBlock ? need : kBlock;
    x_blocks.push_back(std::make_unique<char[]>(block));
    x_block_at = x_blocks.back().get();
    x_block_left = block;
    x_block_bytes += block;
  }
  char* at = x_block_at;
  std::memcpy(at, text.data(), text.size());
  at[text.size()] = '\0';
  x_block_at += need;
  x_block_left -= need;
  return at;
}

}  // namespace cuptiprof
