// Decode cost: completed activity buffers -> finished columns, against the bare iteration of the same buffers
// by the same library (NVIDIA's own libcupti, no GPU needed), interleaved. Prints one JSON object.
//
//   decode_bench LIBCUPTI [RECORDS ...]
//
// The buffers are laid out as CUDA 13.0 writes kernel records; names, configurations, streams and correlation
// IDs vary as in a training step (64 names, 256 configurations, 4 streams), every launch was made inside a
// region, and a name filter is applied.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "collect/record_decoder.h"
#include "collect/regions.h"
#include "cupti/api.h"
#include "filter/kernel_filter.h"

using namespace cuptiprof;

namespace {

constexpr size_t kBufferBytes = 256 << 10;
constexpr size_t kPerBuffer = kBufferBytes / sizeof(CUpti_ActivityKernel10);

struct Buffer {
  std::vector<uint8_t> data;
  size_t valid;
};

std::vector<std::string> make_names() {
  std::vector<std::string> names;
  for (int i = 0; i < 64; ++i)
    names.push_back(
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EEEEviT0_"
        "T1_" +
        std::to_string(i));
  return names;
}

Buffer make_buffer(const std::vector<std::string>& names, uint32_t first) {
  Buffer b{std::vector<uint8_t>(kBufferBytes), 0};
  auto* k = reinterpret_cast<CUpti_ActivityKernel10*>(b.data.data());
  for (size_t i = 0; i < kPerBuffer; ++i) {
    const auto n = static_cast<uint32_t>(first + i);
    k[i].kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    k[i].start = 1'000'000'000ull + n * 5000ull;
    k[i].end = k[i].start + 3000 + n % 997;
    k[i].contextId = 1;
    k[i].streamId = 7 + n % 4;
    k[i].gridX = static_cast<int32_t>(1 + n % 64 * 4 + n % 4);
    k[i].gridY = k[i].gridZ = k[i].blockY = k[i].blockZ = 1;
    k[i].blockX = 128;
    k[i].registersPerThread = 32;
    k[i].correlationId = n + 1;
    k[i].name = names[n % names.size()].c_str();
  }
  b.valid = kPerBuffer * sizeof(CUpti_ActivityKernel10);
  return b;
}

double now() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: decode_bench LIBCUPTI [RECORDS ...]\n");
    return 2;
  }
  const auto api = load_cupti({argv[1], "command line", false});
  std::vector<size_t> sizes;
  for (int i = 2; i < argc; ++i) sizes.push_back(std::strtoull(argv[i], nullptr, 10));
  if (sizes.empty()) sizes = {100'000, 1'000'000, 10'000'000};
  const auto warmer = std::make_shared<PageWarmer>();  // as the collector has one
  const auto names = make_names();
  // 64 buffers, gone through again and again, as a pool would hand them out.
  std::vector<Buffer> buffers;
  for (uint32_t i = 0; i < 64; ++i)
    buffers.push_back(make_buffer(names, static_cast<uint32_t>(i * kPerBuffer)));

  std::printf("{\"cupti_version\": %d, \"record_bytes\": %zu, \"row_bytes\": %zu, \"sizes\": [", api->version,
              sizeof(CUpti_ActivityKernel10), table_spec(TableId::kernels).row_bytes());
  for (size_t s = 0; s < sizes.size(); ++s) {
    const size_t records = sizes[s];
    const size_t passes = std::max<size_t>(records / kPerBuffer, 1);
    std::vector<double> bare, ours;
    const int rounds = records > 2'000'000 ? 3 : 7;
    size_t kept_bytes = 0, kept = 0;
    for (int round = 0; round < rounds; ++round) {
      CUpti_Activity* record = nullptr;
      size_t n = 0;
      double t0 = now();
      for (size_t p = 0; p < passes; ++p) {
        Buffer& b = buffers[p % buffers.size()];
        record = nullptr;
        while (api->cuptiActivityGetNextRecord(b.data.data(), b.valid, &record) == CUPTI_SUCCESS) ++n;
      }
      bare.push_back((now() - t0) / static_cast<double>(n));

      Losses losses;
      CorrelationMap calls(16 << 20);
      RegionTracker regions(calls, losses);
      Store store(Keep::kLatest, size_t{4} << 30, losses, warmer);
      FilterSpec spec;
      spec.kernels = {"*elementwise*"};
      RecordDecoder decoder(*api, regions, calls, losses, std::make_shared<KernelFilter>(spec));
      // Launch events of every correlation ID in the buffers, in one open region.
      set_region_mode(kRegionsOn, true);
      reserve_thread_slots();
      enter_region(kRegionsOn, region_name_id("step"), nullptr, 0);
      for (uint32_t c = 1; c <= buffers.size() * kPerBuffer; ++c) {
        this_thread_slot()->ring.push({now_ns(), 0, nullptr, c, EventKind::kLaunch});
        if (c % 16384 == 0) regions.drain(store);
      }
      regions.drain(store);
      t0 = now();
      for (size_t p = 0; p < passes; ++p) {
        Buffer& b = buffers[p % buffers.size()];
        decoder.decode(store, b.data.data(), b.valid);
      }
      ours.push_back((now() - t0) / static_cast<double>(n));
      kept = store.table(TableId::kernels).rows();
      kept_bytes = store.used_bytes();
      exit_region(region_name_id("step"), 0);
      regions.drain(store);
      if (losses.orphan_correlations != 0 || kept != n) {
        std::fprintf(stderr, "wrong: %zu rows of %zu records, %lu orphans\n", kept, n,
                     static_cast<unsigned long>(losses.orphan_correlations.load()));
        return 1;
      }
    }
    std::printf(
        "%s{\"records\": %zu, \"bare_ns\": %.2f, \"decode_ns\": %.2f, \"ratio\": %.2f, \"bytes_per_record\": "
        "%.1f, "
        "\"bare_all\": [",
        s ? ", " : "", kept, median(bare), median(ours), median(ours) / median(bare),
        static_cast<double>(kept_bytes) / static_cast<double>(kept));
    for (size_t i = 0; i < bare.size(); ++i) std::printf("%s%.2f", i ? ", " : "", bare[i]);
    std::printf("], \"decode_all\": [");
    for (size_t i = 0; i < ours.size(); ++i) std::printf("%s%.2f", i ? ", " : "", ours[i]);
    std::printf("]}");
  }
  std::printf("]}\n");
  return 0;
}
