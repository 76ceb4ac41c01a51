#include "threads/frame_tree.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bindings/frames/line_table.h"
#include "doctest/doctest.h"
#include "filter/line_pattern.h"

namespace cuptiprof {
namespace {

std::unique_ptr<FrameTree> tree() {
  auto made = std::make_unique<FrameTree>();
  made->map();
  return made;
}

const void* address(uint64_t n) { return reinterpret_cast<const void*>(n); }

TEST_CASE("a node is a line of a function and its caller's node, and says both") {
  const auto t = tree();
  const uint32_t main = t->function("main.py", "<module>", 1, true), f = t->function("lib.py", "f", 7, false);
  const uint32_t outer = t->child(0, main, 3), inner = t->child(outer, f, 9);
  CHECK(t->child(0, main, 3) == outer);
  CHECK(t->child(outer, f, 9) == inner);
  CHECK(t->child(outer, f, 10) != inner);
  CHECK(t->child(0, f, 9) != inner);
  const FramePlace p = t->place(inner);
  CHECK(p.parent == outer);
  CHECK((p.line == 9 && p.first_line == 7 && !p.is_user && p.file == "lib.py" && p.function == "f"));
  CHECK(t->place(outer).is_user);
  t->forget();
  CHECK(t->size() == 0);
  CHECK(t->child(0, t->function("a", "b", 1, true), 1) == 1);
}

TEST_CASE("a code object that died is not the one that comes to lie there") {
  const auto t = tree();
  const uint64_t first = t->add_code(address(4096), "a.py", "f", 1, true);
  CHECK(t->code(address(4096)) == first);
  CHECK_FALSE(t->is_reused(address(4096)));
  t->code_dies(address(8192));  // was never seen
  CHECK_FALSE(t->is_reused(address(8192)));
  t->code_dies(address(4096));
  CHECK(t->is_reused(address(4096)));
  CHECK(FrameTree::function_of(t->code(address(4096))) == 0);
  const uint64_t second = t->add_code(address(4096), "a.py", "f", 1, true);
  CHECK(second != first);  // though it looks the same
  CHECK(FrameTree::function_of(second) == FrameTree::function_of(first));
}

TEST_CASE("threads that add the same at once agree, and find what the others added") {
  const auto t = tree();
  constexpr uint32_t kThreads = 4, kLines = 2000;
  std::vector<std::vector<uint32_t>> nodes(kThreads);
  std::vector<std::thread> threads;
  for (uint32_t n = 0; n < kThreads; ++n)
    threads.emplace_back([&, n] {
      for (uint32_t line = 1; line <= kLines; ++line) {
        const std::string name = "f" + std::to_string(line % 50);
        const uint64_t code = t->add_code(address(64 * (1 + line % 50)), "a.py", name, line % 50, true);
        const uint32_t caller = nodes[n].empty() ? 0 : nodes[n][line / 2 - (line > 1 ? 1 : 0)];
        nodes[n].push_back(t->child(line > 1 ? caller : 0, FrameTree::function_of(code), line));
        t->remember(uint64_t{line} * 0x9e3779b97f4a7c15ull, nodes[n].back());
      }
    });
  for (auto& thread : threads) thread.join();
  for (uint32_t line = 1; line <= kLines; ++line) {
    const uint32_t node = nodes[0][line - 1];
    for (uint32_t n = 1; n < kThreads; ++n) REQUIRE(nodes[n][line - 1] == node);
    REQUIRE(t->find(uint64_t{line} * 0x9e3779b97f4a7c15ull) == node);
    REQUIRE(t->place(node).line == line);
    REQUIRE(t->place(node).function == "f" + std::to_string(line % 50));
  }
}

TEST_CASE("a tree that is full says so and stays as it is") {
  const auto t = tree();
  const uint32_t f = t->function("a.py", "f", 1, true);
  uint32_t line = 1, node = 0, last = 0;
  while ((node = t->child(0, f, line)) != 0) last = node, ++line;
  CHECK(line > 100'000);
  CHECK(t->child(0, f, line + 1) == 0);
  CHECK(t->child(0, f, 1) == 1);
  CHECK(t->place(last).line == line - 1);
  const std::string text(4096, 'x');
  uint32_t texts = 0;
  while (t->function(text.substr(0, 4000) + std::to_string(texts), "f", 1, true) != 0) ++texts;
  CHECK(texts > 1000);
  CHECK(t->function("a.py", "f", 1, true) == f);
}

TEST_CASE("damaged line tables end") {
  uint32_t seed = 1;
  for (int i = 0; i < 20000; ++i) {
    unsigned char table[40];
    for (auto& byte : table) byte = static_cast<unsigned char>((seed = seed * 1664525 + 1013904223) >> 24);
    const size_t length = i % (sizeof table + 1);
    CHECK(frames::LocationTable::line(table, length, 1 << 30, i % 300) >= 0);
    CHECK(frames::LinePairs::line(table, length, 1 << 30, i % 300) >= 0);
  }
}

TEST_CASE("line patterns") {
  const auto matches = [](const char* pattern, LineView at) {
    return LinePattern(pattern, "line").matches(at);
  };
  const LineView at{"/app/pkg/train.py", "Model.step", 42};
  for (const char* yes : {"train.py", "train.py:42", "pkg/train.py:42", "/app/pkg/train.py", "*.py", "step",
                          "Model.step", "Model.*", "t?ain.py:42"})
    CHECK(matches(yes, at));
  for (const char* no :
       {"train.py:4", "rain.py", "tep", "step:42", "Model", "app", "train.py:", "other/train.py"})
    CHECK_FALSE(matches(no, at));
  CHECK(matches("<string>:3", {"<string>", "<module>", 3}));
  CHECK(matches("<module>", {"<string>", "<module>", 3}));
}

}  // namespace
}  // namespace cuptiprof
