// Memory that runs out on the decoder thread, at every allocation in turn: decoder_memory LIBCUPTI_SIM
//
// The program goes on, and every kernel is a row or counted. "once": one allocation fails; "for good": all do
// from there until the session ends.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "collect/regions/regions.h"
#include "collect/regions/scope_labels.h"
#include "cupti/api.h"
#include "session/session.h"
#include "sim/cuptisim.h"

using namespace cuptiprof;

namespace {

std::atomic<bool> g_armed{false};
std::atomic<int64_t> g_left{0};  // allocations until the first that fails
std::atomic<uint64_t> g_failed{0};
bool g_for_good = false;
pthread_t g_main;
thread_local int t_inside_cupti = 0;  // what the library allocates is not ours

bool must_fail() {
  if (!g_armed.load(std::memory_order_relaxed) || t_inside_cupti || pthread_equal(pthread_self(), g_main))
    return false;
  const int64_t left = g_left.fetch_sub(1);
  if (left > 0 || (left < 0 && !g_for_good)) return false;
  ++g_failed;
  return true;
}

void* allocate(size_t bytes) {
  void* memory = must_fail() ? nullptr : std::malloc(bytes ? bytes : 1);
  if (!memory) throw std::bad_alloc();
  return memory;
}

struct Inside {
  Inside() { ++t_inside_cupti; }
  ~Inside() { --t_inside_cupti; }
};

decltype(&cuptiActivityFlushAll) g_flush;
CUptiResult CUPTIAPI flush(uint32_t flag) {
  const Inside inside;
  return g_flush(flag);
}

void require(bool ok, const std::string& what) {
  if (ok) return;
  std::fprintf(stderr, "FAILED: %s\n", what.c_str());
  std::exit(1);
}

uint64_t loss(const Session& session, const char* name) {
  for (const auto& [key, value] : session.losses())
    if (key == name) return value;
  return 0;
}

// Kernels of many names and shapes, in many regions.
void launch(decltype(&cuptisim_run) run, int round) {
  std::vector<std::string> names;
  for (int i = 0; i < 8; ++i)
    names.push_back("kernel_" + std::string(200, 'x') + std::to_string(8 * round + i));
  std::vector<cuptisim_op> ops(8);
  for (size_t i = 0; i < ops.size(); ++i) {
    ops[i] = {};
    ops[i].size = sizeof ops[i];
    ops[i].kind = CUPTISIM_OP_KERNEL;
    ops[i].domain = CUPTI_CB_DOMAIN_RUNTIME_API;
    ops[i].name = names[i].c_str();
    ops[i].grid[0] = 1 + 8 * round + static_cast<int>(i);
  }
  const uint32_t region = region_label_id("region_" + std::to_string(round));
  const uint64_t in = enter_region(g_region_mode.load(), region, nullptr, 0);
  require(run(ops.data(), ops.size(), nullptr) == 0, "cuptisim_run");
  if (in) exit_region(in, 0);
}

}  // namespace

void* operator new(size_t bytes) { return allocate(bytes); }
void* operator new[](size_t bytes) { return allocate(bytes); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t) noexcept { std::free(p); }

int main(int argc, char** argv) {
  require(argc == 2, "usage: decoder_memory LIBCUPTI_SIM");
  g_main = pthread_self();
  const auto loaded = load_cupti({argv[1], "command line", true});
  auto api = std::make_shared<Api>(*loaded);
  g_flush = api->cuptiActivityFlushAll;
  api->cuptiActivityFlushAll = &flush;
  void* handle = dlopen(argv[1], RTLD_LAZY);
  const auto run = reinterpret_cast<decltype(&cuptisim_run)>(dlsym(handle, "cuptisim_run"));
  const auto reset = reinterpret_cast<decltype(&cuptisim_reset)>(dlsym(handle, "cuptisim_reset"));
  constexpr int kRounds = 40;
  for (const bool for_good : {false, true}) {
    g_for_good = for_good;
    int allocation = 0;
    for (;; allocation += allocation < 200 ? 1 : 7) {
      cuptisim_config config{};
      config.size = sizeof config;
      config.virtual_clock = 1;
      require(reset(&config) == 0, "cuptisim_reset");
      SessionOptions options;
      options.api = api;
      options.activity.kinds = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL};
      options.budget_bytes = 16u << 20;
      options.buffer_bytes = 16u << 10;
      options.buffer_count = 16;
      Session session(std::move(options));
      session.start(false);
      g_failed = 0;
      g_left = allocation;
      g_armed = true;
      uint64_t rows = 0;
      for (int round = 0; round < kRounds; ++round) launch(run, round);
      rows += session.take()->table(TableId::kernels).rows();  // in the midst of it
      for (int round = 0; round < kRounds; ++round) launch(run, kRounds + round);
      rows += session.stop()->table(TableId::kernels).rows();
      g_armed = false;
      const SessionCounts counts = session.counts();
      const uint64_t lost = loss(session, "out_of_memory") + loss(session, "budget_evicted") +
                            counts.kernels_lost_in_pool + loss(session, "unreconciled_launches");
      const std::string where = "allocation " + std::to_string(allocation) +
                                (for_good ? " for good" : " once") + ": " + std::to_string(counts.launches) +
                                " launches, " + std::to_string(rows) + " rows, " + std::to_string(lost) +
                                " lost";
      require(counts.launches == 2 * kRounds * 8, where);
      require(rows + lost == counts.launches, where);
      require(loss(session, "unreconciled_launches") == 0, where + " unreconciled");
      if (g_failed == 0) break;
    }
    require(allocation > 20, "hardly anything was allocated");
    std::printf("%s: allocations up to the %dth failed in turn\n", for_good ? "for good" : "once",
                allocation);
  }
  // And a session after them is whole.
  Session session([&] {
    SessionOptions options;
    options.api = api;
    options.activity.kinds = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL};
    return options;
  }());
  session.start(false);
  launch(run, 1);
  require(session.stop()->table(TableId::kernels).rows() == 8, "the session after");
  std::puts("ok");
  return 0;
}
