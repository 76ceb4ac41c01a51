// Sessions with counters on the stand-in under many threads, for the sanitizers:
//   counters_through_session LIBCUPTI_SIM
//
// Threads launch in regions, capture graphs, unload modules, create and destroy contexts; the control thread
// pauses, resumes, steps, takes and stops at random, while faults come and go. For every strategy: what was
// selected is measured or counted as lost, a value is that of its own kernel, and nothing stays switched on.
#include <dlfcn.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "collect/regions/regions.h"
#include "collect/regions/scope_labels.h"
#include "counters/plan/planner.h"
#include "cupti/api.h"
#include "session/session.h"
#include "sim/cuptisim.h"

using namespace cuptiprof;

namespace {

constexpr int kThreads = 8;
const std::vector<std::string> kMetrics = {"sm__inst_executed.sum", "sm__warps_active.sum"};

struct Simulator {
  decltype(&cuptisim_run) run;
  decltype(&cuptisim_reset) reset;
  decltype(&cuptisim_inject) inject;
  decltype(&cuptisim_clear_faults) clear_faults;
  decltype(&cuptisim_get_truth) get_truth;
  decltype(&cuptisim_true_metric) true_metric;
} g_sim;

void require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "FAILED: %s\n", what);
  std::exit(1);
}

std::shared_mutex g_modules;  // a program unloads no module whose kernels it is launching

std::string kernel_name(int i) { return "kernel_" + std::to_string(i); }

cuptisim_op op_of(cuptisim_op_kind kind, uint32_t context, uint32_t stream) {
  cuptisim_op op{};
  op.size = sizeof op;
  op.kind = static_cast<uint16_t>(kind);
  op.domain = CUPTI_CB_DOMAIN_RUNTIME_API;
  op.context = context;
  op.stream = stream;
  return op;
}

// The same text gives the same values wherever it is launched.
cuptisim_op kernel(const std::string& name, int kind, uint32_t context, uint32_t stream) {
  cuptisim_op op = op_of(CUPTISIM_OP_KERNEL, context, stream);
  op.name = name.c_str();
  op.grid[0] = 1 + kind;
  op.block[0] = 128;
  op.grid[1] = op.grid[2] = op.block[1] = op.block[2] = 1;
  op.duration_ns = 500;
  return op;
}

void work(const std::atomic<bool>& stop, int id) {
  std::minstd_rand random(static_cast<unsigned>(id + 1));
  const uint32_t outer = region_label_id("outer"), inner = region_label_id("inner" + std::to_string(id % 3));
  std::vector<std::string> names;
  for (int i = 0; i < 6; ++i) names.push_back(kernel_name(i));
  const uint32_t own_context = 100 + static_cast<uint32_t>(id), stream = 7 + static_cast<uint32_t>(id);
  auto run = [](const cuptisim_op& op) {
    const std::shared_lock launching(g_modules);
    return g_sim.run(&op, 1, nullptr);
  };
  auto enter = [](uint32_t name) {
    const uint32_t mode = g_region_mode.load();
    return mode & kRegionsOn ? enter_region(mode, name, nullptr, 0) : 0;
  };
  while (!stop.load(std::memory_order_relaxed)) {
    const uint64_t in_outer = enter(outer);
    const uint64_t in_inner = random() % 2 ? enter(inner) : 0;
    const uint32_t context = random() % 4 ? 1 + random() % 2 : own_context;
    for (int i = 0; i < 4; ++i) {
      const int kind = static_cast<int>(random() % names.size());
      cuptisim_op op = kernel(names[static_cast<size_t>(kind)], kind, context, stream);
      if (random() % 50 == 0) op.return_value = 700;  // refused by the driver
      run(op);
    }
    if (in_inner) exit_region(in_inner, 0);
    if (in_outer) exit_region(in_outer, 0);
    switch (random() % 40) {
      case 0:
        run(op_of(CUPTISIM_OP_CONTEXT_DESTROY, own_context, 0));
        break;
      case 2: {
        cuptisim_op capture = op_of(CUPTISIM_OP_GRAPH_BEGIN_CAPTURE, context, stream);
        capture.graph_id =
            1000 + static_cast<uint32_t>(id) * 100000 + static_cast<uint32_t>(random() % 100000);
        // Unloading a module would break the capture.
        const std::shared_lock launching(g_modules);
        const cuptisim_op captured = kernel(names[0], 0, context, stream);
        g_sim.run(&capture, 1, nullptr);
        g_sim.run(&captured, 1, nullptr);
        capture.kind = CUPTISIM_OP_GRAPH_END_CAPTURE;
        g_sim.run(&capture, 1, nullptr);
        capture.kind = CUPTISIM_OP_GRAPH_LAUNCH;
        g_sim.run(&capture, 1, nullptr);
        break;
      }
      default:
        std::this_thread::yield();
    }
  }
}

struct Totals {
  uint64_t rows = 0;
  uint64_t wrong = 0;
};

void add(Totals& totals, Session& session) {
  const auto taken = session.take_counters();
  CounterStrategy& strategy = *session.counters();
  const Strategy kind = strategy.options().strategy;
  for (size_t i = 0; i < taken->rows.size(); ++i) {
    const CounterRow& row = taken->rows[i];
    if (kind == Strategy::kSample) continue;
    ++totals.rows;
    if (kind == Strategy::kRange) continue;  // holds what other threads launched too
    const std::string name = strategy.selector().text(row.name);
    const cuptisim_op op = kernel(name, std::atoi(name.c_str() + 7), 1, 1);
    const auto& metrics = strategy.options().groups[row.group].metrics;
    for (size_t m = 0; m < metrics.size(); ++m) {
      double truth = 0;
      require(g_sim.true_metric(&op, metrics[m].c_str(), &truth) == 0, "cuptisim_true_metric");
      const double value = taken->values[taken->offsets[i] + m];
      if (std::isnan(value)) continue;  // evaluation failed on purpose: no value, not a wrong one
      if (!(std::fabs(value - truth) <= 1e-9 * std::fabs(truth) + 1e-9)) {
        if (totals.wrong++ == 0)
          std::fprintf(stderr, "%s of %s is %g, not %g\n", metrics[m].c_str(), name.c_str(), value, truth);
      }
    }
  }
}

void fault(std::minstd_rand& random) {
  switch (random() % 12) {
    case 0:
      return void(g_sim.inject(CUPTISIM_FAULT_DROP_RANGES, nullptr, 7, 0, 0));
    case 1:
      return void(g_sim.inject(CUPTISIM_FAULT_COUNTERS_BUSY, nullptr, 1, 0, 0));
    case 2:
      return void(g_sim.inject(CUPTISIM_FAULT_NO_PRIVILEGES, nullptr, 1, 0, 0));
    case 3:
      return void(
          g_sim.inject(CUPTISIM_FAULT_FAIL_CALL, "cuptiRangeProfilerStop", CUPTI_ERROR_UNKNOWN, 3, 2));
    case 4:
      return void(
          g_sim.inject(CUPTISIM_FAULT_FAIL_CALL, "cuptiRangeProfilerDecodeData", CUPTI_ERROR_UNKNOWN, 2, 2));
    case 5:
      return void(
          g_sim.inject(CUPTISIM_FAULT_FAIL_CALL, "cuptiRangeProfilerPopRange", CUPTI_ERROR_UNKNOWN, 5, 2));
    case 6:
      return void(g_sim.inject(CUPTISIM_FAULT_FAIL_CALL, "cuptiProfilerHostEvaluateToGpuValues",
                               CUPTI_ERROR_UNKNOWN, 2, 4));
    case 7:
      return void(
          g_sim.inject(CUPTISIM_FAULT_FAIL_CALL, "cuptiPmSamplingDecodeData", CUPTI_ERROR_UNKNOWN, 1, 2));
    default:
      g_sim.clear_faults();
  }
}

void one_session(const std::shared_ptr<const Api>& api, Strategy strategy, std::vector<PassGroup> groups,
                 bool selective, int number) {
  std::minstd_rand random(static_cast<unsigned>(number * 31 + 7));
  SessionOptions options;
  options.api = api;
  options.activity.kinds = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME};
  options.budget_bytes = 16u << 20;
  options.buffer_bytes = 16u << 10;
  options.drain_timeout_ms = 50;  // refused launches never have a record
  CounterOptions counters;
  counters.strategy = strategy;
  counters.chip = "GH100";
  counters.groups = std::move(groups);
  counters.batch = 16;
  counters.turn_timeout_ms = 20;
  counters.row_bytes = number % 3 == 2 ? 16u << 10 : 4u << 20;  // 16 KiB: there is no room in the end
  counters.interval = 50'000;
  counters.hardware_buffer = 1u << 20;
  FilterSpec spec;
  if (selective && strategy != Strategy::kRange && strategy != Strategy::kSample)
    spec.kernels = {"regex:kernel_(1|2)$"};
  if (selective) spec.regions = {"outer"};
  if (selective) counters.selector.filter = std::make_shared<const KernelFilter>(spec);
  options.counters = counters;
  Totals totals;
  uint64_t selected = 0, lost = 0;
  {
    Session session(std::move(options));
    session.start(false);
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) threads.emplace_back([&, t] { work(stop, t); });
    for (int i = 0; i < 12; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      fault(random);
      switch (random() % 5) {
        case 0:
          session.step(1);
          break;
        case 4: {
          const std::unique_lock alone(g_modules);
          const cuptisim_op unload = op_of(CUPTISIM_OP_MODULE_UNLOAD, 1, 0);
          require(g_sim.run(&unload, 1, nullptr) == 0, "module unload");
          break;
        }
        case 1:
          session.pause();
          std::this_thread::sleep_for(std::chrono::milliseconds(2));
          g_sim.clear_faults();  // without privileges there is nothing to resume
          session.resume();
          break;
        case 2:
          session.take();
          add(totals, session);
          break;
        default:
          session.counts();
      }
    }
    // Every other session is stopped while its threads launch.
    if (number % 2 == 0) {
      stop = true;
      for (auto& t : threads) t.join();
    }
    session.stop();
    stop = true;
    for (auto& t : threads)
      if (t.joinable()) t.join();
    add(totals, session);
    CounterEvents& e = session.counters()->events();
    selected = session.counters()->selector().selected();
#define CP_EVENT(name, doc) lost += e.name.load();
    CP_COUNTER_EVENTS(CP_EVENT)
#undef CP_EVENT
    lost -= e.overwritten + e.overflows + e.differing;
    std::printf("strategy %d%s: %lu selected, %lu measured, %lu counted as lost, %lu wrong\n",
                static_cast<int>(strategy), selective ? ", selective" : "",
                static_cast<unsigned long>(selected), static_cast<unsigned long>(totals.rows),
                static_cast<unsigned long>(lost), static_cast<unsigned long>(totals.wrong));
#define CP_EVENT(name, doc) \
  if (e.name.load()) std::printf("  %s %lu", #name, static_cast<unsigned long>(e.name.load()));
    CP_COUNTER_EVENTS(CP_EVENT)
#undef CP_EVENT
    std::printf("\n");
  }
  g_sim.clear_faults();
  require(totals.wrong == 0, "a value is not that of its kernel");
  if (strategy != Strategy::kSample)
    require(selected == totals.rows + lost, "selected launches unaccounted for");
  if (strategy != Strategy::kSample) require(selected > 0, "nothing was selected");
  // Nothing is left on: launches are neither counted nor replayed, and the machine can be reset.
  cuptisim_truth before{}, after{};
  before.size = after.size = sizeof before;
  g_sim.get_truth(&before);
  const std::string name = kernel_name(0);
  const cuptisim_op op = kernel(name, 0, 1, 1);
  for (int i = 0; i < 10; ++i) require(g_sim.run(&op, 1, nullptr) == 0, "launch after the session");
  g_sim.get_truth(&after);
  require(after.ranges_collected == before.ranges_collected &&
              after.kernels_replayed == before.kernels_replayed && after.callbacks == before.callbacks,
          "something is left on");
  cuptisim_config config{};
  config.size = sizeof config;
  require(g_sim.reset(&config) == 0, "cuptisim_reset");
}

}  // namespace

int main(int argc, char** argv) {
  require(argc == 2, "usage: counters_through_session LIBCUPTI_SIM");
  const auto api = load_cupti({argv[1], "command line", true});
  void* handle = dlopen(argv[1], RTLD_LAZY);
#define LOAD(name) g_sim.name = reinterpret_cast<decltype(&cuptisim_##name)>(dlsym(handle, "cuptisim_" #name))
  LOAD(run), LOAD(reset), LOAD(inject), LOAD(clear_faults), LOAD(get_truth), LOAD(true_metric);
#undef LOAD
  cuptisim_config config{};
  config.size = sizeof config;
  require(g_sim.reset(&config) == 0, "cuptisim_reset");
  auto plan = [&](ProfilerType type, std::vector<std::string> metrics, bool one_pass) {
    PlanRequest request;
    request.chip = "GH100";
    request.type = type;
    Planner planner(api, request);
    return one_pass ? planner.one_pass_groups(metrics) : planner.plan(metrics);
  };
  std::vector<std::string> many = kMetrics;
  for (const char* m : {"lts__t_sectors.sum", "l1tex__t_sectors.sum", "dram__bytes_read.sum",
                        "sm__inst_executed_pipe_tensor.sum", "lts__t_sectors_op_read.sum"})
    many.push_back(m);
  const auto one = plan(ProfilerType::kRange, kMetrics, false);
  const auto several =
      plan(ProfilerType::kRange, {"lts__t_sector_hit_rate.pct", "sm__inst_executed.sum"}, false);
  const auto rotated = plan(ProfilerType::kRange, many, true);
  require(several.size() == 1 && several.front().passes > 1, "the set should take several passes");
  int number = 0;
  for (const bool selective : {false, true}) {
    one_session(api, Strategy::kReplay, several, selective, number++);
    one_session(api, Strategy::kReplay, one, selective, number++);
    one_session(api, Strategy::kIterate, rotated, selective, number++);
    one_session(api, Strategy::kRange, one, selective, number++);
    one_session(api, Strategy::kSample, plan(ProfilerType::kSampling, {"sm__inst_executed.sum"}, false),
                selective, number++);
  }
  std::puts("ok");
  return 0;
}
