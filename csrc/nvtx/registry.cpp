#include "nvtx/registry.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>

namespace cuptiprof::nvtx {
namespace {

constexpr const char* kOther = "(other)";
constexpr size_t kMaxNames = 1u << 16;  // of categories and of objects, each

Domain g_domains[kMaxDomains] = {{""}};  // 0: the default one
String g_strings[kMaxStrings] = {{kOther, 7, ~0u, 0}};
std::atomic<uint32_t> g_domain_count{1}, g_string_count{1};
std::atomic<uint64_t> g_lost{0};

struct Known {
  std::unordered_map<std::string, uint32_t> domains;
  std::map<std::pair<uint32_t, std::string>, uint32_t, std::less<>> strings;
  std::map<std::pair<uint32_t, uint32_t>, std::string> categories;
  std::map<std::pair<Named, uint64_t>, std::string> objects;
  size_t bytes = 0;
};

std::mutex g_mutex;  // guards known(), and writing the arrays; held over a fork
Known& known() {
  static Known* all = new Known;  // never destroyed: programs call NVTX on their way out
  return *all;
}

[[maybe_unused]] const int g_registered =
    pthread_atfork([] { g_mutex.lock(); }, [] { g_mutex.unlock(); }, [] { g_mutex.unlock(); });

// A text is kept twice: as it is handed out, and as it is looked up.
bool has_room(std::string_view text) {
  Known& all = known();
  if (all.bytes + 2 * text.size() > kMaxTextBytes) return false;
  all.bytes += 2 * text.size();
  return true;
}

const char* copied(std::string_view text) {
  char* copy = new char[text.size() + 1];
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = 0;
  return copy;
}

template <typename Map, typename Key>
void set_name(Map& names, const Key& key, std::string_view name) {
  const auto found = names.find(key);
  if ((found == names.end() && names.size() >= kMaxNames) || !has_room(name)) {
    g_lost.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  names[key] = std::string(name);
}

uint32_t other_domain() {
  // The last place is kept for it.
  if (!g_domains[kMaxDomains - 1].name) {
    g_domains[kMaxDomains - 1].name = kOther;
    g_domain_count.store(kMaxDomains, std::memory_order_release);
  }
  return kMaxDomains - 1;
}

}  // namespace

const Domain* make_domain(std::string_view name) noexcept try {
  if (name.empty()) return nullptr;
  const std::lock_guard lock(g_mutex);
  std::string key(name);
  const auto found = known().domains.find(key);
  if (found != known().domains.end()) return &g_domains[found->second];
  const uint32_t number = g_domain_count.load(std::memory_order_relaxed);
  if (number >= kMaxDomains - 1 || !has_room(name)) {
    g_lost.fetch_add(1, std::memory_order_relaxed);
    return &g_domains[other_domain()];
  }
  g_domains[number].name = copied(name);
  known().domains.emplace(std::move(key), number);
  g_domain_count.store(number + 1, std::memory_order_release);
  return &g_domains[number];
} catch (...) {
  g_lost.fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

const String* make_string(const Domain* domain, std::string_view text) noexcept try {
  const uint32_t of = domain_number(domain);
  const std::lock_guard lock(g_mutex);
  auto key = std::pair(of, std::string(text));
  const auto found = known().strings.find(key);
  if (found != known().strings.end()) return &g_strings[found->second];
  const uint32_t number = g_string_count.load(std::memory_order_relaxed);
  if (number >= kMaxStrings || !has_room(text)) {
    g_lost.fetch_add(1, std::memory_order_relaxed);
    return &g_strings[0];
  }
  g_strings[number] = {copied(text), static_cast<uint32_t>(text.size()), of, 0};
  known().strings.emplace(std::move(key), number);
  g_string_count.store(number + 1, std::memory_order_release);
  return &g_strings[number];
} catch (...) {
  g_lost.fetch_add(1, std::memory_order_relaxed);
  return &g_strings[0];
}

void name_category(const Domain* domain, uint32_t category, std::string_view name) noexcept try {
  const std::lock_guard lock(g_mutex);
  set_name(known().categories, std::pair(domain_number(domain), category), name);
} catch (...) {
  g_lost.fetch_add(1, std::memory_order_relaxed);
}

size_t category_name(uint32_t domain, uint32_t category, char* out, size_t room) noexcept {
  const std::lock_guard lock(g_mutex);
  const auto found = known().categories.find({domain, category});
  if (found == known().categories.end()) return 0;
  const size_t n = std::min(room, found->second.size());
  std::memcpy(out, found->second.data(), n);
  return n;
}

void name_object(Named what, uint64_t object, std::string_view name) noexcept try {
  const std::lock_guard lock(g_mutex);
  set_name(known().objects, std::pair(what, object), name);
} catch (...) {
  g_lost.fetch_add(1, std::memory_order_relaxed);
}

void visit_names(void (*visit)(void*, Named, uint64_t, const char*), void* user) noexcept {
  const std::lock_guard lock(g_mutex);
  for (const auto& [key, name] : known().objects) visit(user, key.first, key.second, name.c_str());
}

uint64_t texts_lost() noexcept { return g_lost.load(std::memory_order_relaxed); }

uint32_t domain_number(const Domain* domain) noexcept {
  const auto offset = reinterpret_cast<uintptr_t>(domain) - reinterpret_cast<uintptr_t>(g_domains);
  const bool ours = offset < sizeof g_domains && offset % sizeof(Domain) == 0;
  const size_t number = offset / sizeof(Domain);
  return ours && number < g_domain_count.load(std::memory_order_acquire) && g_domains[number].name
             ? static_cast<uint32_t>(number)
             : 0;
}

const char* domain_name(uint32_t number) noexcept { return g_domains[number].name; }

String* known_string(const String* string) noexcept {
  const auto offset = reinterpret_cast<uintptr_t>(string) - reinterpret_cast<uintptr_t>(g_strings);
  const bool ours = offset < sizeof g_strings && offset % sizeof(String) == 0;
  const size_t number = offset / sizeof(String);
  return ours && number < g_string_count.load(std::memory_order_acquire) ? &g_strings[number] : nullptr;
}

}  // namespace cuptiprof::nvtx
