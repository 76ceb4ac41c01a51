#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "doctest/doctest.h"
#include "threads/launch_scopes.h"
#include "threads/scope_trie.h"

namespace cuptiprof {
namespace {

using Labels = std::vector<uint32_t>;

Labels open_labels(LaunchScopes& scopes) { return g_scope_trie.labels(scopes.node()); }

TEST_CASE("a node of the trie is its path") {
  auto trie = std::make_unique<ScopeTrie>();
  const uint32_t a = trie->child(0, 7), b = trie->child(a, 8), other = trie->child(0, 8);
  CHECK(trie->child(0, 7) == a);
  CHECK(trie->child(a, 8) == b);
  CHECK(other != b);
  CHECK(trie->labels(b) == Labels{7, 8});
  CHECK(trie->labels(0).empty());
}

TEST_CASE("threads that enter the same paths get the same nodes") {
  auto trie = std::make_unique<ScopeTrie>();
  constexpr uint32_t kThreads = 4, kPaths = 2000;
  std::vector<std::vector<uint32_t>> nodes(kThreads);
  std::atomic<uint32_t> ready{0};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      ++ready;
      while (ready < kThreads) {
      }
      for (uint32_t i = 1; i <= kPaths; ++i) nodes[t].push_back(trie->child(trie->child(0, i % 37 + 1), i));
    });
  for (auto& t : threads) t.join();
  for (uint32_t t = 1; t < kThreads; ++t) CHECK(nodes[t] == nodes[0]);
  CHECK(std::set(nodes[0].begin(), nodes[0].end()).size() == kPaths);
  for (uint32_t i = 1; i <= kPaths; ++i) CHECK(trie->labels(nodes[0][i - 1]) == Labels{i % 37 + 1, i});
}

TEST_CASE("a trie without room gives the scope around, and counts") {
  auto trie = std::make_unique<ScopeTrie>();
  const uint32_t root = trie->child(0, 1);
  const uint64_t before = g_scopes_lost.load();
  uint64_t inside = 0;
  for (uint32_t i = 2; i < 200'000; ++i) inside += trie->child(root, i) == root;
  CHECK(inside > 0);
  CHECK(g_scopes_lost.load() - before == inside);
  g_scopes_lost.store(0);
}

TEST_CASE("stacks of several origins are popped each by itself") {
  LaunchScopes scopes;
  CHECK(scopes.node() == 0);
  scopes.push(1, 100);
  scopes.push(2, 200);
  scopes.push(3, 100);
  CHECK(open_labels(scopes) == Labels{1, 2, 3});
  scopes.pop(200);
  CHECK(open_labels(scopes) == Labels{1, 3});
  scopes.pop(200);  // that one began before
  CHECK(open_labels(scopes) == Labels{1, 3});
  scopes.push(4, 200);
  CHECK(open_labels(scopes) == Labels{1, 3, 4});
  scopes.pop(100);
  scopes.pop(100);
  CHECK(open_labels(scopes) == Labels{4});
  LaunchScopes::forget_all();
  CHECK(scopes.node() == 0);
  scopes.pop(200);
  scopes.push(5, 100);
  CHECK(open_labels(scopes) == Labels{5});
}

TEST_CASE("scopes deeper than there is room for are left again") {
  LaunchScopes scopes;
  for (uint32_t i = 1; i <= LaunchScopes::kMax + 10; ++i) scopes.push(i, 0);
  CHECK(open_labels(scopes).size() == LaunchScopes::kMax);
  for (uint32_t i = 0; i < 10; ++i) scopes.pop(0);
  CHECK(open_labels(scopes).back() == LaunchScopes::kMax);
  scopes.pop(0);
  CHECK(open_labels(scopes).back() == LaunchScopes::kMax - 1);
}

}  // namespace
}  // namespace cuptiprof
