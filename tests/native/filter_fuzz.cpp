// Random and mutated text through everything that parses text: run it under ASan and UBSan. Deterministic;
// argument: rounds.
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "base/demangle/demangle.h"
#include "base/error.h"
#include "filter/filter_state.h"
#include "filter/nearest_names.h"

using namespace cuptiprof;

namespace {

const std::vector<std::string> kSeeds = {
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEENS_6detail5ArrayIPcLi1EEEEEviT0_"
    "T1_",
    "_ZZN2at6native4gpuKEPfENKUlT_E_clIiEEDaS1_",
    "_ZN1A3runIJifEEENSt9enable_ifIXgesZT_Li2EEvE4typeEDpRKT_",
    "_Z1fPFvPA3_KiEM1SFivEDv4_fRKSt5tupleIJDpT_EE",
    "_ZN1fIXadL_ZN1n1gEiEELb0EXsr3fooIT_E5valueEEEvDTcl1gfp_EE",
    "void at::native::(anonymous namespace)::k<&(n::g(int)), ((a)>(b))>(int) "
    "const::{lambda(int)#1}::operator()() const",
    "regex:^(foo|[bB]ar){1,3}.*[[:alpha:]]$",
    "*[!a-z]?kernel[]x]*",
    "1:foo:at::native::bar:2|3",
    "1|5:2:regex:s884:.*5",
    "regex:Domain[A-Z]@[Range[0-9]/*/x/+/\\[y]",
    "D@A\\/B/*/C]",
    "A,B\\,C",
    "fwd/layer\\/0/*",
};
constexpr std::string_view kAlphabet =
    "_ZNSTIEJXLDpPKRO0123456789abcifvtw<>(){}[]:/@,*+?|\\.^$!- \xc3\xa9\xff";

std::string mutate(std::mt19937& rng) {
  std::string text = kSeeds[rng() % kSeeds.size()];
  for (unsigned n = rng() % 6; n > 0; --n) {
    const size_t at = text.empty() ? 0 : rng() % text.size();
    const char c = rng() % 40 == 0 ? '\0' : kAlphabet[rng() % kAlphabet.size()];
    switch (rng() % 5) {
      case 0:
        if (!text.empty()) text[at] = c;
        break;
      case 1:
        text.insert(at, 1, c);
        break;
      case 2:
        text.erase(at, 1 + rng() % 4);
        break;
      case 3:
        text += text.substr(at, rng() % 20);
        break;
      default:
        text += kSeeds[rng() % kSeeds.size()].substr(0, rng() % 30);
    }
  }
  return text;
}

void drive(const KernelFilter& filter, const std::string& text) {
  FilterState state(filter);
  const NameVerdict name = filter.name_verdict(NameParts(text));
  const std::vector<std::string> path = split_region_path(text);
  const std::vector<std::string_view> views(path.begin(), path.end());
  const DomainRanges domains[] = {{"", views}, {"D", views}};
  const bool ranges = filter.matches_ranges({text, views, views, domains, domains});
  LaunchView launch;
  launch.context_name = launch.stream_name = text;
  for (launch.context = 0; launch.context < 4; ++launch.context)
    (void)state.select(filter, launch, name, ranges);
  (void)filter.describe();
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 20000;
  std::mt19937 rng(7);
  int compiled = 0, refused = 0;
  for (int i = 0; i < rounds; ++i) {
    const std::string text = mutate(rng), name = mutate(rng);
    const std::string plain = demangle(text);
    (void)function_base(plain);
    (void)qualified_name(plain);
    const std::string names[] = {text, name};
    (void)nearest_names(text, names, 2);
    for (int kind = 0; kind < 6; ++kind) {
      FilterSpec spec;
      spec.skip = 1;
      spec.mode = kind % 2 ? FilterMode::kGlobal : FilterMode::kPerLaunchConfig;
      std::vector<std::string>* const lists[] = {&spec.kernels,    &spec.kernel_names, &spec.nvprof_kernels,
                                                 &spec.kernel_ids, &spec.nvtx_include, &spec.regions};
      lists[kind]->push_back(text);
      try {
        drive(KernelFilter(spec), name);
        ++compiled;
      } catch (const Error& e) {
        if (e.kind() != ErrorKind::kFilter || e.hint().empty()) return 1;
        ++refused;
      }
    }
  }
  std::printf("%d filters compiled, %d refused\n", compiled, refused);
  return compiled > 0 && refused > 0 ? 0 : 1;
}
