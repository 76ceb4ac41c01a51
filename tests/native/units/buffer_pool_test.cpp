#include "collect/buffers/buffer_pool.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "collect/buffers/decoder_bell.h"
#include "doctest/doctest.h"

namespace cuptiprof {
namespace {

using std::chrono::milliseconds;
constexpr size_t kBytes = 8192;

std::vector<CompletedBuffer> completed(BufferPool& pool) {
  std::array<CompletedBuffer, 64> out;
  return {out.begin(), out.begin() + static_cast<ptrdiff_t>(pool.take_completed(out.data(), out.size()))};
}

TEST_CASE("an arena knows its buffers by their addresses") {
  BufferArena arena(1000, 3, false);  // not a whole number of cache lines
  std::set<uint8_t*> lent;
  for (uint64_t i = 0; i < 3; ++i) lent.insert(arena.lend(10 + i));
  CHECK(lent.size() == 3);
  CHECK(lent.count(nullptr) == 0);
  CHECK(arena.lend(99) == nullptr);
  std::vector<uint8_t*> in_order(lent.begin(), lent.end());
  for (size_t i = 0; i + 1 < 3; ++i) CHECK(in_order[i] + 1000 <= in_order[i + 1]);
  CHECK(arena.lent_between(10, 13) == 3);
  CHECK(arena.lent_between(11, 12) == 1);

  uint64_t request = 0;
  uint8_t stranger = 0;
  CHECK_FALSE(arena.take_back(&stranger, &request));
  CHECK_FALSE(arena.take_back(in_order[0] + 8, &request));  // the middle of one
  CHECK_FALSE(arena.take_back(in_order[2] + 1024, &request));
  uint8_t* const first = *lent.begin();
  CHECK(arena.take_back(first, &request));
  CHECK(request >= 10);
  CHECK(request < 13);
  CHECK_FALSE(arena.take_back(first, &request));  // CUPTI has it no more
  CHECK(arena.lend(20) == nullptr);               // it is not free either
  arena.free(first);
  CHECK(arena.lend(20) == first);
}

TEST_CASE("a buffer goes to CUPTI, to the decoder, and back, cleared") {
  BufferPool pool;
  pool.configure(kBytes, 8);
  size_t bytes = 0;
  uint8_t* const a = pool.acquire(&bytes);
  uint8_t* const b = pool.acquire(&bytes);
  CHECK(bytes == kBytes);
  CHECK(pool.held_by_cupti() == 2);
  std::memset(a, 1, 100);
  std::memset(b, 2, 200);
  CHECK(pool.complete(b, 200) == Returned::kToDecoder);
  CHECK(pool.complete(a, 100) == Returned::kToDecoder);
  CHECK(pool.held_by_cupti() == 0);
  CHECK(pool.complete(a, 100) == Returned::kForeign);  // not CUPTI's any more

  const auto got = completed(pool);
  REQUIRE(got.size() == 2);
  CHECK(got[0].data == b);
  CHECK(got[0].valid_bytes == 200);
  CHECK(got[1].data == a);
  CHECK_FALSE(got[0].earlier);
  CHECK_FALSE(pool.wait_for_decoder(milliseconds(1)));
  for (const CompletedBuffer& c : got) pool.release(c.data, c.valid_bytes);
  CHECK(pool.wait_for_decoder(milliseconds(0)));
  for (int i = 0; i < 8; ++i) {
    uint8_t* const again = pool.acquire(&bytes);
    CHECK(std::all_of(again, again + bytes, [](uint8_t x) { return x == 0; }));
  }
}

TEST_CASE("with every buffer in use CUPTI gets one whose records are counted") {
  BufferPool pool;
  pool.configure(kBytes, 4);
  size_t bytes = 0;
  CHECK_FALSE(pool.is_low());
  for (int i = 0; i < 4; ++i) CHECK(pool.acquire(&bytes) != nullptr);
  CHECK(pool.is_low());
  std::vector<uint8_t*> discards;
  for (int i = 0; i < 1024; ++i) {
    uint8_t* const discard = pool.acquire(&bytes);
    REQUIRE(discard != nullptr);
    CHECK(bytes >= 4096);
    discards.push_back(discard);
  }
  CHECK(pool.acquire(&bytes) == nullptr);  // CUPTI drops, and counts
  CHECK(bytes == 0);
  for (uint8_t* d : discards) {
    CHECK(pool.complete(d, 64) == Returned::kDiscard);
    pool.release(d, 64);
  }
  CHECK(completed(pool).empty());
  CHECK(pool.acquire(&bytes) != nullptr);
}

TEST_CASE("what comes back late belongs to the session that gave it out") {
  BufferPool pool;
  pool.configure(kBytes, 1);
  size_t bytes = 0;
  uint8_t* const old = pool.acquire(&bytes);
  uint8_t* const old_discard = pool.acquire(&bytes);
  SUBCASE("buffers of the same size") { pool.configure(kBytes, 1); }
  SUBCASE("of another size") { pool.configure(2 * kBytes, 2); }
  CHECK(pool.held_by_cupti() == 0);  // of this session
  uint8_t* const fresh = pool.acquire(&bytes);
  CHECK(fresh != old);
  CHECK(pool.complete(fresh, 10) == Returned::kToDecoder);
  std::memset(old, 7, kBytes);  // still ours to write to: CUPTI does
  CHECK(pool.complete(old, kBytes) == Returned::kToDecoder);
  CHECK(pool.complete(old_discard, 10) == Returned::kEarlierDiscard);
  pool.release(old_discard, 10);
  const auto got = completed(pool);
  REQUIRE(got.size() == 2);
  CHECK_FALSE(got[0].earlier);
  CHECK(got[1].earlier);
  for (const CompletedBuffer& c : got) pool.release(c.data, c.valid_bytes);
}

TEST_CASE("another client's buffer is left alone") {
  BufferPool pool;
  pool.configure(kBytes, 2);
  std::vector<uint8_t> theirs(kBytes, 9);
  CHECK(pool.complete(theirs.data(), kBytes) == Returned::kForeign);
  CHECK(completed(pool).empty());
  CHECK(std::all_of(theirs.begin(), theirs.end(), [](uint8_t x) { return x == 9; }));
}

TEST_CASE("threads that ask and give back at once never share a buffer and lose none") {
  constexpr int kThreads = 4, kRounds = 3000;
  BufferPool pool;
  pool.configure(kBytes, 6);
  std::atomic<uint64_t> given{0}, discarded{0}, wrong{0};
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        size_t bytes = 0;
        uint8_t* const buffer = pool.acquire(&bytes);
        const auto mark = static_cast<uint8_t>(t + 1);
        if (std::any_of(buffer, buffer + 64, [](uint8_t x) { return x != 0; })) wrong.fetch_add(1);
        std::memset(buffer, mark, 64);
        if (std::any_of(buffer, buffer + 64, [mark](uint8_t x) { return x != mark; })) wrong.fetch_add(1);
        switch (pool.complete(buffer, 64)) {
          case Returned::kToDecoder:
            given.fetch_add(1);
            break;
          case Returned::kDiscard:
            discarded.fetch_add(1);
            pool.release(buffer, 64);
            break;
          default:
            wrong.fetch_add(1);
        }
      }
    });
  uint64_t decoded = 0;
  std::thread decoder([&] {
    for (bool last = false; !last;) {
      last = done.load();
      g_decoder_bell.wait(1);
      for (const CompletedBuffer& c : completed(pool)) {
        ++decoded;
        pool.release(c.data, c.valid_bytes);
      }
    }
  });
  for (auto& t : threads) t.join();
  done.store(true);
  g_decoder_bell.ring();
  decoder.join();
  CHECK(wrong.load() == 0);
  CHECK(decoded == given.load());
  CHECK(given.load() + discarded.load() == uint64_t{kThreads} * kRounds);
  CHECK(pool.held_by_cupti() == 0);
  CHECK(pool.requests() == uint64_t{kThreads} * kRounds);
}

TEST_CASE("a bell that rang before is heard, once for all rings") {
  while (true) {  // rings of the tests before
    const auto began = std::chrono::steady_clock::now();
    g_decoder_bell.wait(20);
    if (std::chrono::steady_clock::now() - began >= milliseconds(15)) break;
  }
  for (int i = 0; i < 5; ++i) g_decoder_bell.ring();
  const auto began = std::chrono::steady_clock::now();
  g_decoder_bell.wait(5000);
  CHECK(std::chrono::steady_clock::now() - began < milliseconds(2500));
  g_decoder_bell.wait(30);
  CHECK(std::chrono::steady_clock::now() - began >= milliseconds(25));
}

}  // namespace
}  // namespace cuptiprof
