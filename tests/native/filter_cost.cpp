// What a filter costs a launch: prints nanoseconds. Exits 1 when a verdict is wrong.
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "filter/filter_state.h"
#include "filter/select_rows.h"

using namespace cuptiprof;

namespace {

constexpr size_t kLaunches = 2'000'000;

struct Run {
  std::vector<LaunchView> launches;
  std::vector<uint32_t> names;
};

Run make_run() {
  Run run;
  for (size_t i = 0; i < 4096; ++i) {
    LaunchView launch;
    launch.stream = static_cast<uint32_t>(i % 7);
    launch.context = 1;
    launch.thread = 100 + i % 3;
    launch.grid = {static_cast<int32_t>(1 + i % 5), 1, 1};
    launch.block = {256, 1, 1};
    run.launches.push_back(launch);
    run.names.push_back(static_cast<uint32_t>(i * 2654435761u % 50));
  }
  return run;
}

template <class F>
double nanoseconds(F judge, size_t& selected) {
  const auto begin = std::chrono::steady_clock::now();
  for (size_t i = 0; i < kLaunches; ++i) selected += judge(i & 4095);
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() /
         kLaunches;
}

bool measure(const char* what, FilterSpec spec, const Run& run) {
  const KernelFilter filter(std::move(spec));
  std::vector<NameVerdict> verdicts;
  for (int i = 0; i < 50; ++i)
    verdicts.push_back(
        filter.name_verdict(NameParts("_ZN2at6native6kernelILi" + std::to_string(i) + "EEEvT_" + "i")));
  size_t stateless = 0, stateful = 0;
  const double a = nanoseconds(
      [&](size_t i) { return filter.matches_stateless(run.launches[i], verdicts[run.names[i]], true); },
      stateless);
  FilterState state(filter);
  const double b = nanoseconds(
      [&](size_t i) { return state.select(filter, run.launches[i], verdicts[run.names[i]], true); },
      stateful);
  std::printf("%-44s stateless %5.1f ns, with counters %5.1f ns, selected %zu\n", what, a, b, stateful);
  return state.selected() == stateful && (filter.is_stateful() || stateless == stateful);
}

}  // namespace

int main() {
  const Run run = make_run();
  bool ok = measure("everything", {}, run);
  FilterSpec name;
  name.kernels = {"kern*"};
  ok &= measure("name", name, run);
  FilterSpec all = name;
  all.streams = {1, 2, 3};
  all.devices = {0};
  all.threads = {100, 101};
  all.contexts = {1};
  all.grid = Dim3{2, 1, 1};
  all.block = Dim3{256, 1, 1};
  ok &= measure("name, device, stream, context, thread, sizes", all, run);
  FilterSpec counted = name;
  counted.skip = 10;
  counted.every = 3;
  ok &= measure("name, skip, every", counted, run);
  FilterSpec per_config = counted;
  per_config.mode = FilterMode::kPerLaunchConfig;
  ok &= measure("name, skip, every, per launch config", per_config, run);
  FilterSpec ids;
  ids.nvprof_kernels = {"::kernel:.*[13]"};
  ok &= measure("nvprof ::kernel:.*[13]", ids, run);
  FilterSpec id;
  id.nvprof_kernels = {"1:2:kernel:3"};
  ok &= measure("nvprof 1:2:kernel:3", id, run);

  const auto begin = std::chrono::steady_clock::now();
  size_t matched = 0;
  const KernelFilter regex([] {
    FilterSpec s;
    s.kernels = {"regex:(gemm|conv).*tn"};
    return s;
  }());
  for (int i = 0; i < 20000; ++i)
    matched += regex.matches_name(NameParts("_ZN2at6native6kernelILi" + std::to_string(i) + "EEEvT_"));
  std::printf(
      "name verdict with demangling, once a name: %.0f ns\n",
      std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / 20000);
  return ok && matched == 0 ? 0 : 1;
}
