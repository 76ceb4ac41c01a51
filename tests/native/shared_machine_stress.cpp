// One simulated machine under everybody at once, for the sanitizers: shared_machine_stress LIBCUPTI_SIM
//
// Threads launch, capture, synchronise, unload and make contexts; others open sessions and close them, open
// the machine as it is and as something else, and try to reset it. A reset happens only while nobody is
// inside, and every session still accounts for its launches.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/error.h"
#include "cupti/api.h"
#include "session/session.h"
#include "sim/cuptisim.h"

using namespace cuptiprof;

namespace {

constexpr int kThreads = 6;
constexpr int kSessions = 40;

struct Sim {
  decltype(&cuptisim_run) run;
  decltype(&cuptisim_reset) reset;
  decltype(&cuptisim_open) open;
  decltype(&cuptisim_close) close;
} g_sim;

void require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "FAILED: %s\n", what);
  std::exit(1);
}

cuptisim_op op_of(cuptisim_op_kind kind, uint32_t stream) {
  cuptisim_op op{};
  op.size = sizeof op;
  op.kind = static_cast<uint16_t>(kind);
  op.domain = 2;
  op.stream = stream;
  op.name = "kernel";
  op.duration_ns = 500;
  return op;
}

// Whatever a program does between two of somebody else's sessions. A reset in between may have taken a
// capture or a graph away: such calls are refused, never wrong.
void work(const std::atomic<bool>& stop, uint32_t id) {
  const uint32_t stream = 20 + id;
  std::vector<cuptisim_op> launches(20, op_of(CUPTISIM_OP_KERNEL, stream));
  launches[5].kind = CUPTISIM_OP_SYNC_STREAM;
  launches[11].kind = CUPTISIM_OP_EVENT_RECORD;
  launches[11].event = id;
  launches[12].kind = CUPTISIM_OP_STREAM_WAIT_EVENT;
  launches[12].event = (id + 1) % kThreads;
  cuptisim_op begin = op_of(CUPTISIM_OP_GRAPH_BEGIN_CAPTURE, 100 + id), end = begin, node = begin,
              graph = begin;
  begin.graph_id = end.graph_id = graph.graph_id = 1 + id;
  end.kind = CUPTISIM_OP_GRAPH_END_CAPTURE;
  node.kind = CUPTISIM_OP_KERNEL;
  graph.kind = CUPTISIM_OP_GRAPH_LAUNCH;
  graph.stream = stream;
  cuptisim_op destroy = op_of(CUPTISIM_OP_CONTEXT_DESTROY, 0), own = op_of(CUPTISIM_OP_KERNEL, 0);
  destroy.context = own.context = 50 + id;
  for (uint32_t round = 0; !stop.load(std::memory_order_relaxed); ++round) {
    require(g_sim.run(launches.data(), launches.size(), nullptr) == 0, "cuptisim_run");
    if (round % 4 == id % 4) {
      for (const cuptisim_op* op : {&begin, &node, &end, &graph}) g_sim.run(op, 1, nullptr);
    }
    if (round % 16 == id) {
      require(g_sim.run(&own, 1, nullptr) == 0, "a launch in a context of its own");
      g_sim.run(&destroy, 1, nullptr);
    }
    std::this_thread::yield();
  }
}

cuptisim_config config_of(const char* chip) {
  cuptisim_config config{};
  config.size = sizeof config;
  config.chip = chip;
  return config;
}

struct Tries {
  std::atomic<uint64_t> resets{0}, refused{0}, opened{0};
};

void try_resets(const std::atomic<bool>& stop, Tries& tries) {
  const cuptisim_config same = config_of("H100"), other = config_of("A100");
  for (int i = 0; !stop.load(); ++i) {
    const int rc = i % 3 == 0 ? g_sim.reset(&same) : i % 3 == 1 ? g_sim.open(&same) : g_sim.open(&other);
    require(rc == 0 || rc == 208 || rc == 600, "an unknown answer");
    ++(rc != 0 ? tries.refused : i % 3 == 0 ? tries.resets : tries.opened);
    if (rc == 0 && i % 3 != 0) g_sim.close();
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

uint64_t rows_of(const std::shared_ptr<Store>& store) { return store->table(TableId::kernels).rows(); }

// False: the machine was something else.
bool one_session(const std::shared_ptr<const Api>& api, int s) {
  const cuptisim_config config = config_of(s % 2 ? "H100" : "A100");
  const int rc = g_sim.open(&config);
  require(rc == 0 || rc == 208 || rc == 600, "opening the machine");
  if (rc != 0) return false;
  SessionOptions options;
  options.api = api;
  options.activity.kinds = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME,
                            CUPTI_ACTIVITY_KIND_DEVICE, CUPTI_ACTIVITY_KIND_CONTEXT};
  options.budget_bytes = 16u << 20;
  options.buffer_bytes = 16u << 10;
  Session session(std::move(options));
  session.start(false);
  std::this_thread::sleep_for(std::chrono::milliseconds(1 + s % 5));
  const uint64_t rows = rows_of(session.stop());
  g_sim.close();
  uint64_t lost = 0;
  for (const auto& [name, value] : session.losses())
    if (name != "module_unloads") lost += value;
  require(session.counts().launches <= rows + lost, "launches unaccounted for");
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  require(argc == 2, "usage: shared_machine_stress LIBCUPTI_SIM");
  const auto api = load_cupti({argv[1], "command line", true});
  void* handle = dlopen(argv[1], RTLD_LAZY);
  g_sim.run = reinterpret_cast<decltype(g_sim.run)>(dlsym(handle, "cuptisim_run"));
  g_sim.reset = reinterpret_cast<decltype(g_sim.reset)>(dlsym(handle, "cuptisim_reset"));
  g_sim.open = reinterpret_cast<decltype(g_sim.open)>(dlsym(handle, "cuptisim_open"));
  g_sim.close = reinterpret_cast<decltype(g_sim.close)>(dlsym(handle, "cuptisim_close"));
  std::atomic<bool> stop{false};
  Tries tries;
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t) threads.emplace_back([&, t] { work(stop, t); });
  for (int t = 0; t < 2; ++t) threads.emplace_back([&] { try_resets(stop, tries); });
  for (int s = 0, tries = 0; s < kSessions; ++tries)
    if (one_session(api, s + tries))
      ++s;
    else
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  stop = true;
  for (auto& t : threads) t.join();
  std::printf("%d sessions, %lu resets, %lu openings, %lu refused\n", kSessions,
              static_cast<unsigned long>(tries.resets), static_cast<unsigned long>(tries.opened),
              static_cast<unsigned long>(tries.refused));
  require(tries.resets > 0 && tries.refused > 0, "nothing was tried");
  std::puts("ok");
  return 0;
}
