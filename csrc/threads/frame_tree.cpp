#include "threads/frame_tree.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace cuptiprof {
namespace {

uint64_t hash_of_text(std::string_view text) noexcept {
  uint64_t h = 0xcbf29ce484222325ull;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return h;
}

uint64_t mixed(uint64_t a, uint64_t b) noexcept {
  a = (a ^ b) * 0xff51afd7ed558ccdull;
  return a ^ a >> 32;
}

}  // namespace

void FrameTree::map() {
  if (x_stacks) return;
  void* mapped =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    throw Error(ErrorKind::kBudget, "cannot map 40 MiB of address space for Python's lines",
                "raise ulimit -v, or leave \"lines\" and \"stacks\" out of sources=");
  auto* memory = static_cast<char*>(mapped);  // zeros are empty everywhere
  x_stacks = reinterpret_cast<Stack*>(memory);
  x_codes = reinterpret_cast<Code*>(memory + kStackBytes);
  x_texts = memory + kBytes - kTextBytes;
  place_sets();
}

void FrameTree::place_sets() noexcept {
  char* memory = reinterpret_cast<char*>(x_stacks) + kStackBytes + kCodeBytes;
  x_functions.place(memory, kFunctions);
  memory += AppendSet<Function>::bytes(kFunctions);
  x_nodes.place(memory, kNodes);
  memory += AppendSet<Node>::bytes(kNodes);
  x_text_set.place(memory, kTexts);
  x_text_used.store(0);
}

void FrameTree::forget() noexcept {
  madvise(x_stacks, kBytes, MADV_DONTNEED);  // zeros again
  place_sets();
  for (auto& bits : x_reused) bits.store(0, std::memory_order_relaxed);
  x_any_reused.store(false, std::memory_order_relaxed);
}

void FrameTree::remember(uint64_t hash, uint32_t node) noexcept {
  for (uint32_t i = 0, at = slot_of(hash, kStacks); i < kProbes; ++i, at = (at + 1) % kStacks) {
    uint64_t seen = x_stacks[at].hash.load(std::memory_order_acquire);
    if (seen == 0 && x_stacks[at].hash.compare_exchange_strong(seen, hash, std::memory_order_acq_rel))
      seen = hash;
    if (seen != hash) continue;
    x_stacks[at].node.store(node, std::memory_order_release);
    return;
  }
}

uint64_t FrameTree::add_code(const void* address, std::string_view file, std::string_view name,
                             uint32_t first_line, bool is_user) noexcept {
  const uint32_t id = function(file, name, first_line, is_user);
  if (id == 0) return 0;
  const auto key = reinterpret_cast<uint64_t>(address);
  for (uint32_t i = 0, at = slot_of(key, kCodes); i < kProbes; ++i, at = (at + 1) % kCodes) {
    uint64_t seen = x_codes[at].address.load(std::memory_order_acquire);
    if (seen == 0 && x_codes[at].address.compare_exchange_strong(seen, key, std::memory_order_acq_rel))
      seen = key;
    if (seen != key) continue;
    // Only this code lives here, on whatever threads it runs: they all write the same.
    const uint64_t deaths = x_codes[at].state.load(std::memory_order_acquire) >> 32;
    const uint64_t state = deaths << 32 | (is_user ? kUserBit : 0u) | id;
    x_codes[at].state.store(state, std::memory_order_release);
    return state;
  }
  return 0;
}

void FrameTree::code_dies(const void* address) noexcept {
  if (!x_codes) return;
  const auto key = reinterpret_cast<uint64_t>(address);
  for (uint32_t i = 0, at = slot_of(key, kCodes); i < kProbes; ++i, at = (at + 1) % kCodes) {
    const uint64_t seen = x_codes[at].address.load(std::memory_order_acquire);
    if (seen == 0) return;
    if (seen != key) continue;
    const uint64_t state = x_codes[at].state.load(std::memory_order_acquire);
    if (function_of(state) == 0) return;
    const uint32_t bit = slot_of(key, kReusedBits);
    x_reused[bit / 64].fetch_or(uint64_t{1} << bit % 64, std::memory_order_relaxed);
    x_any_reused.store(true, std::memory_order_relaxed);
    x_codes[at].state.store(((state >> 32) + 1) << 32, std::memory_order_release);
    return;
  }
}

uint32_t FrameTree::child(uint32_t parent, uint32_t function, uint32_t line) noexcept {
  const Node wanted{parent, function, line};
  return x_nodes.find_or_add(
      mixed(uint64_t{parent} << 32 | function, line),
      [&](const Node& n) { return n.parent == parent && n.function == function && n.line == line; },
      [&](Node& n) {
        n = wanted;
        return true;
      });
}

uint32_t FrameTree::function(std::string_view file, std::string_view name, uint32_t first_line,
                             bool is_user) noexcept {
  const Function wanted{text(file), text(name), first_line, is_user};
  if (wanted.file == 0 || wanted.name == 0) return 0;
  return x_functions.find_or_add(
      mixed(uint64_t{wanted.file} << 32 | wanted.name, uint64_t{first_line} << 1 | is_user),
      [&](const Function& f) {
        return f.file == wanted.file && f.name == wanted.name && f.first_line == first_line &&
               f.user == wanted.user;
      },
      [&](Function& f) {
        f = wanted;
        return true;
      });
}

FunctionPlace FrameTree::function_at(uint32_t function) const noexcept {
  const Function& f = x_functions.at(function);
  return {view(f.file), view(f.name), f.first_line};
}

FramePlace FrameTree::place(uint32_t node) const noexcept {
  const Node& n = x_nodes.at(node);
  const Function& f = x_functions.at(n.function);
  return {n.parent, n.line, f.first_line, f.user != 0, view(f.file), view(f.name)};
}

uint32_t FrameTree::text(std::string_view text) noexcept {
  text = text.substr(0, kMaxText);
  return x_text_set.find_or_add(
      hash_of_text(text),
      [&](const Text& t) { return std::string_view(x_texts + t.offset, t.length) == text; },
      [&](Text& t) {
        uint32_t at = x_text_used.load(std::memory_order_relaxed);
        do {
          if (text.size() > kTextBytes - at) return false;
        } while (!x_text_used.compare_exchange_weak(at, at + static_cast<uint32_t>(text.size()),
                                                    std::memory_order_relaxed));
        std::memcpy(x_texts + at, text.data(), text.size());
        t = {at, static_cast<uint32_t>(text.size())};
        return true;
      });
}

std::string_view FrameTree::view(uint32_t text) const noexcept {
  const Text& t = x_text_set.at(text);
  return {x_texts + t.offset, t.length};
}

}  // namespace cuptiprof
