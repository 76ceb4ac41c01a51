// The whole collector on the stand-in under 16 threads, for the sanitizers: collector_stress LIBCUPTI_SIM
//
// Threads open regions and launch while the control thread pauses, resumes, takes results and stops; every
// session checks that launches = rows + counted losses.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "collect/regions/regions.h"
#include "collect/regions/scope_labels.h"
#include "cupti/api.h"
#include "session/session.h"
#include "sim/cuptisim.h"

using namespace cuptiprof;

namespace {

constexpr int kThreads = 16;
constexpr int kSessions = 6;

decltype(&cuptisim_run) g_run;

void require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "FAILED: %s\n", what);
  std::exit(1);
}

void work(const std::atomic<bool>& stop, std::atomic<uint64_t>& launched, int id) {
  const uint32_t outer = region_label_id("outer"), inner = region_label_id("inner" + std::to_string(id % 4));
  std::vector<cuptisim_op> ops(16);
  const std::string name = "kernel_" + std::to_string(id % 5);
  for (auto& op : ops) {
    op = {};
    op.size = sizeof op;
    op.kind = CUPTISIM_OP_KERNEL;
    op.domain = id % 2 ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API;
    op.name = name.c_str();
    op.stream = static_cast<uint32_t>(7 + id);
    op.grid[0] = 1 + id;
  }
  ops[3].kind = CUPTISIM_OP_MEMCPY;
  ops[3].flags = CUPTISIM_ASYNC;
  ops[3].bytes = 4096;
  while (!stop.load(std::memory_order_relaxed)) {
    const uint32_t mode = g_region_mode.load();
    const bool on = (mode & kRegionsOn) != 0;
    const uint64_t in_outer = !on ? 0 : enter_region(mode, outer, new RegionMetadata{1.0, 2.0, "{}"}, 0);
    const uint64_t in_inner = !on ? 0 : enter_region(mode, inner, nullptr, 0);
    require(g_run(ops.data(), ops.size(), nullptr) == 0, "cuptisim_run");
    launched += ops.size() - 1;
    if (in_inner) exit_region(in_inner, 0);
    if (in_outer) exit_region(in_outer, 0);
    std::this_thread::yield();
  }
}

// A callback that is on its way while the session stops, and counts its launch when all has been counted.
std::atomic<bool> g_is_on_its_way{false}, g_goes_on{false};
thread_local bool t_waits = false;

uint64_t waiting_task() {
  if (t_waits) {
    g_is_on_its_way = true;
    while (!g_goes_on.load()) std::this_thread::yield();
  }
  return 0;
}

void stop_beside_a_callback(const std::shared_ptr<const Api>& api, decltype(&cuptisim_inject) inject) {
  SessionOptions options;
  options.api = api;
  options.activity.kinds = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL};
  options.drain_timeout_ms = 10;
  Session session(std::move(options));
  session.start(false);
  cuptisim_op op{};
  op.size = sizeof op;
  op.kind = CUPTISIM_OP_KERNEL;
  op.domain = CUPTI_CB_DOMAIN_DRIVER_API;
  op.name = "k";
  require(g_run(&op, 1, nullptr) == 0, "cuptisim_run");
  g_task_key = &waiting_task;
  std::thread launching([&] {
    t_waits = true;
    g_run(&op, 1, nullptr);
  });
  while (!g_is_on_its_way.load()) std::this_thread::yield();
  constexpr uint64_t kUnsubscribing = 400'000'000;  // ns, within which the callback goes on
  require(inject(CUPTISIM_FAULT_CALL_TIME, "cuptiUnsubscribe", kUnsubscribing, 0, 0) == 0, "cuptisim_inject");
  std::thread releasing([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    g_goes_on = true;
  });
  const uint64_t rows = session.stop()->table(TableId::kernels).rows();
  launching.join();
  releasing.join();
  g_task_key = nullptr;
  uint64_t unreconciled = 0;
  for (const auto& [name, value] : session.losses())
    if (name == "unreconciled_launches") unreconciled = value;
  std::printf("beside a callback: %lu launches, %lu rows, %lu without\n",
              static_cast<unsigned long>(session.counts().launches), static_cast<unsigned long>(rows),
              static_cast<unsigned long>(unreconciled));
  require(session.counts().launches == rows + unreconciled,
          "a launch after the last count is of the session");
}

uint64_t rows_of(const std::shared_ptr<Store>& store) { return store->table(TableId::kernels).rows(); }

}  // namespace

int main(int argc, char** argv) {
  require(argc == 2, "usage: collector_stress LIBCUPTI_SIM");
  const auto api = load_cupti({argv[1], "command line", true});
  void* handle = dlopen(argv[1], RTLD_LAZY);
  g_run = reinterpret_cast<decltype(g_run)>(dlsym(handle, "cuptisim_run"));
  const auto reset = reinterpret_cast<decltype(&cuptisim_reset)>(dlsym(handle, "cuptisim_reset"));
  stop_beside_a_callback(api, reinterpret_cast<decltype(&cuptisim_inject)>(dlsym(handle, "cuptisim_inject")));
  for (int s = 0; s < kSessions; ++s) {
    cuptisim_config config{};
    config.size = sizeof config;
    config.virtual_clock = s % 2;
    require(reset(&config) == 0, "cuptisim_reset");
    SessionOptions options;
    options.api = api;
    options.activity.kinds = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                              CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DEVICE,
                              CUPTI_ACTIVITY_KIND_CONTEXT};
    options.keep = s % 3 == 2 ? Keep::kFirst : Keep::kLatest;
    options.budget_bytes = 16u << 20;
    options.buffer_bytes = 16u << 10;
    options.buffer_count = s % 2 ? 64 : 4;  // 4: the pool runs dry
    Session session(std::move(options));
    session.start(false);
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> launched{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) threads.emplace_back([&, t] { work(stop, launched, t); });
    uint64_t rows = 0;
    for (int i = 0; i < 5; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      session.counts();
      session.pause();
      rows += rows_of(session.take());
      session.resume();
    }
    // In some rounds CUPTI leaves the process while the threads go on launching.
    const bool finalizes = s % 3 == 1;
    if (finalizes) {
      rows += rows_of(session.stop());
      session.finalize();
    }
    stop = true;
    for (auto& t : threads) t.join();
    if (!finalizes) rows += rows_of(session.stop());
    const SessionCounts counts = session.counts();
    uint64_t evicted = 0, unreconciled = 0, invalid = 0;
    for (const auto& [name, value] : session.losses()) {
      if (name == "budget_evicted") evicted = value;
      if (name == "unreconciled_launches") unreconciled = value;
      if (name == "invalid_timestamps") invalid = value;
    }
    std::printf("session %d: %lu launches, %lu rows, %lu lost in pool, %lu rows evicted (all tables)\n", s,
                static_cast<unsigned long>(counts.launches), static_cast<unsigned long>(rows),
                static_cast<unsigned long>(counts.kernels_lost_in_pool), static_cast<unsigned long>(evicted));
    require(rows > 0, "no rows");
    // A launch whose kinds were switched off between its callback and its record has neither row nor loss;
    // the counter of unreconciled launches holds it.
    require(counts.launches <= rows + counts.kernels_lost_in_pool + evicted + unreconciled + invalid,
            "launches unaccounted for");
    require(counts.kernels_received <= rows + evicted + invalid, "records unaccounted for");
  }
  std::puts("ok");
  return 0;
}
