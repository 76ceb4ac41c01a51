#include "collect/torch/operator_names.h"

#include <atomic>
#include <cstring>
#include <mutex>
#include <new>
#include <string_view>

#include "collect/regions/scope_labels.h"
#include "store/losses.h"

namespace cuptiprof::torch {
namespace {

// A name of the process, kept for good. A program has so many operators; where it makes names without end
// (record_function), those that find no place here are looked up by text each time, which takes a lock.
struct KnownName {
  std::atomic<uint32_t> label;  // of the session whose first label is not above it
  uint32_t length;
  uint64_t hash;
  uint8_t scope;
  char text[];  // with its end
};

constexpr uint32_t kNames = 1u << 14, kNameProbes = 32;  // by hash of the text
constexpr uint32_t kPointers = 1u << 12;                 // by address, the last one seen there
constexpr size_t kLongestName = 1024;                    // of longer ones the beginning counts

std::atomic<KnownName*> g_names[kNames];
std::atomic<KnownName*> g_by_pointer[kPointers];
std::mutex g_new_names_mutex;  // guards adding to g_names

uint64_t hash_of(std::string_view text, uint8_t scope) noexcept {
  uint64_t h = 0x9e3779b97f4a7c15ull ^ scope ^ text.size() << 8;
  const char* at = text.data();
  size_t left = text.size();
  for (uint64_t word; left >= sizeof word; at += sizeof word, left -= sizeof word) {
    std::memcpy(&word, at, sizeof word);
    h = (h ^ word) * 0xff51afd7ed558ccdull;
    h ^= h >> 32;
  }
  uint64_t word = 0;
  std::memcpy(&word, at, left);
  h = (h ^ word) * 0xff51afd7ed558ccdull;
  return h ^ h >> 29;
}

bool is_name(const KnownName& name, uint64_t hash, std::string_view text, uint8_t scope) noexcept {
  return name.hash == hash && name.scope == scope && std::string_view(name.text, name.length) == text;
}

KnownName* find_name(uint64_t hash, std::string_view text, uint8_t scope) noexcept {
  for (uint32_t i = 0, at = hash % kNames; i < kNameProbes; ++i, at = (at + 1) % kNames) {
    KnownName* name = g_names[at].load(std::memory_order_acquire);
    if (!name) return nullptr;
    if (is_name(*name, hash, text, scope)) return name;
  }
  return nullptr;
}

// Null: no room, or no memory.
KnownName* add_name(uint64_t hash, std::string_view text, uint8_t scope) noexcept {
  const std::lock_guard lock(g_new_names_mutex);
  if (KnownName* known = find_name(hash, text, scope)) return known;
  for (uint32_t i = 0, at = hash % kNames; i < kNameProbes; ++i, at = (at + 1) % kNames) {
    if (g_names[at].load(std::memory_order_relaxed)) continue;
    void* memory = ::operator new(sizeof(KnownName) + text.size() + 1, std::nothrow);
    if (!memory) return nullptr;
    auto* name = new (memory) KnownName{{0}, static_cast<uint32_t>(text.size()), hash, scope};
    std::memcpy(name->text, text.data(), text.size());
    name->text[text.size()] = '\0';
    g_names[at].store(name, std::memory_order_release);
    return name;
  }
  return nullptr;
}

uint32_t label_of_name(std::string_view text, uint8_t scope) noexcept try {
  const char domain = static_cast<char>(scope);
  return scope_label_id(ScopeSource::kOperator, {&domain, 1}, text);
} catch (...) {
  count(g_labels_lost);
  return 0;
}

}  // namespace

uint32_t operator_label(const char* name, uint8_t scope) noexcept {
  const auto address = reinterpret_cast<uintptr_t>(name);
  std::atomic<KnownName*>& seen = g_by_pointer[(address >> 4 ^ address >> 16) % kPointers];
  KnownName* known = seen.load(std::memory_order_acquire);
  if (!known || known->scope != scope || std::strcmp(known->text, name) != 0) [[unlikely]] {
    const std::string_view text(name, strnlen(name, kLongestName));
    const uint64_t hash = hash_of(text, scope);
    known = find_name(hash, text, scope);
    if (!known) known = add_name(hash, text, scope);
    if (!known) return label_of_name(text, scope);
    seen.store(known, std::memory_order_release);
  }
  uint32_t label = known->label.load(std::memory_order_relaxed);
  if (label < g_first_label.load(std::memory_order_relaxed)) [[unlikely]] {
    label = label_of_name({known->text, known->length}, scope);
    known->label.store(label, std::memory_order_relaxed);
  }
  return label;
}

}  // namespace cuptiprof::torch
