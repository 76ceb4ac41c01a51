#include "collect/records/kernel_names.h"

#include <cstring>
#include <memory>
#include <string>

#include "doctest/doctest.h"

namespace cuptiprof {
namespace {

std::unique_ptr<KernelNames> nothing_known() {
  auto names = std::make_unique<KernelNames>();
  names->reset();
  return names;
}

std::string text(const char* found) { return found ? found : "nothing"; }

TEST_CASE("a name is found after its memory has another text") {
  const auto names = nothing_known();
  char memory[16] = "first";
  names->note(memory);
  std::strcpy(memory, "garbage");
  CHECK(text(names->find_seen_in(memory, 0)) == "first");
  CHECK(text(names->find(memory, 0)) == "first");
  CHECK(text(names->find_seen_in("never", 0)) == "nothing");
  CHECK(text(names->find_seen_in(nullptr, 0)) == "nothing");
}

TEST_CASE("one address stands for another text in each epoch") {
  const auto names = nothing_known();
  char memory[16] = "first";
  names->note(memory);
  names->unloaded(10);
  SUBCASE("that no launch has shown") {
    std::strcpy(memory, "of a graph");
    CHECK(text(names->find_seen_in(memory, 1)) == "nothing");
    CHECK(text(names->find_seen_in(memory, 0)) == "first");
    CHECK(text(names->find(memory, 1)) == "first");
  }
  SUBCASE("that a launch has shown") {
    std::strcpy(memory, "second");
    names->note(memory);
    CHECK(text(names->find_seen_in(memory, 1)) == "second");
    CHECK(text(names->find_seen_in(memory, 0)) == "first");
  }
  SUBCASE("the same again") {
    names->note(memory);
    names->unloaded(20);
    names->note(memory);
    for (uint32_t epoch : {0u, 1u, 2u}) CHECK(text(names->find_seen_in(memory, epoch)) == "first");
  }
}

}  // namespace
}  // namespace cuptiprof
