#include "threads/module_table.h"

#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "doctest/doctest.h"
#include "threads/frame_tree.h"

namespace cuptiprof {
namespace {

std::unique_ptr<ModuleTable> table() {
  g_frame_tree.map();  // it keeps the names
  auto made = std::make_unique<ModuleTable>();
  made->map();
  return made;
}

const void* at(uint64_t n) { return reinterpret_cast<const void*>(n * 16); }

TEST_CASE("an object that comes to lie where another died has a number of its own") {
  const auto t = table();
  const uint32_t first = t->number(at(1), at(100));
  CHECK(first != 0);
  CHECK(t->number(at(1), at(100)) == first);
  CHECK(t->find(at(2)) == 0);
  t->dies(at(2));  // was never seen
  t->dies(at(1));
  CHECK(t->find(at(1)) == 0);
  CHECK(t->record(first).died.load() != 0);
  const uint32_t second = t->number(at(1), at(100));
  CHECK(second != first);
  CHECK(t->record(second).died.load() == 0);
  const uint32_t other = t->number(at(1), at(101));  // of another class: the death was not told
  CHECK(other != second);
  CHECK(t->find(at(1)) == other);
}

TEST_CASE("a name is given once, and asked for while an object has none") {
  const auto t = table();
  const uint32_t root = t->number(at(1), at(100)), part = t->number(at(2), at(100));
  CHECK_FALSE(t->has_nameless());
  CHECK(t->use(part));
  CHECK_FALSE(t->use(part));
  CHECK(t->has_nameless());
  t->set_name(part, {"Net", "layers.3", root});
  t->set_name(part, {"Other", "", part});
  CHECK(
      (t->name(part).root_class == "Net" && t->name(part).path == "layers.3" && t->name(part).root == root));
  t->forget_nameless();
  t->set_name(root, {"Net", "", root});
  CHECK_FALSE(t->use(root));
  CHECK_FALSE(t->has_nameless());
  CHECK(t->record(part).used.load() < t->record(root).used.load());
}

TEST_CASE("threads that see the same at once agree, while objects die and others come") {
  const auto t = table();
  constexpr uint32_t kThreads = 4, kObjects = 500;
  std::vector<std::vector<uint32_t>> numbers(kThreads);
  std::vector<std::thread> threads;
  for (uint32_t n = 0; n < kThreads; ++n)
    threads.emplace_back([&, n] {
      for (uint32_t i = 0; i < kObjects; ++i) numbers[n].push_back(t->number(at(i + 1), at(100)));
    });
  for (auto& thread : threads) thread.join();
  for (uint32_t n = 1; n < kThreads; ++n) CHECK(numbers[n] == numbers[0]);
  CHECK(std::set(numbers[0].begin(), numbers[0].end()).size() == kObjects);
  std::set<uint32_t> seen;  // by one that lives and dies, while others look at it
  std::thread lives([&] {
    for (uint32_t i = 0; i < 20000; ++i) {
      CHECK(seen.insert(t->number(at(7000), at(100))).second);
      t->dies(at(7000));
    }
  });
  std::thread looks([&] {
    for (uint32_t i = 0; i < 20000; ++i) static_cast<void>(t->find(at(7000)));
  });
  lives.join();
  looks.join();
  t->forget();
  CHECK(t->size() == 0);
}

}  // namespace
}  // namespace cuptiprof
