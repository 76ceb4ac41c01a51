// Decode cost: completed activity buffers -> finished columns, and the bare iteration of the same buffers by
// the same library (NVIDIA's own libcupti, no GPU needed). Measures what standard input asks for, a line at a
// time:
//
//   decode_bench LIBCUPTI        "bare RECORDS" -> {"ns": ...}, "decode RECORDS" -> {"ns": ..., "rows": ...,
//   "bytes": ...}
//
// The buffers are laid out as CUDA 13.0 writes kernel records; names, configurations, streams and correlation
// IDs vary as in a training step (64 names, 256 configurations, 4 streams), every launch was made inside a
// region, and a name filter is applied.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "collect/records/record_decoder.h"
#include "collect/regions/regions.h"
#include "collect/regions/scope_labels.h"
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

struct Decoded {
  double ns;
  size_t rows, bytes;
};

// Each pass goes through one buffer; 64 of them again and again, as a pool would hand them out.
double iterate(const Api& api, std::vector<Buffer>& buffers, size_t passes) {
  size_t n = 0;
  const double t0 = now();
  for (size_t p = 0; p < passes; ++p) {
    Buffer& b = buffers[p % buffers.size()];
    CUpti_Activity* record = nullptr;
    while (api.cuptiActivityGetNextRecord(b.data.data(), b.valid, &record) == CUPTI_SUCCESS) ++n;
  }
  return (now() - t0) / static_cast<double>(n);
}

// Throws std::runtime_error when a record has no row.
Decoded decode(const Api& api, std::vector<Buffer>& buffers, size_t passes,
               const std::shared_ptr<PageWarmer>& warmer) {
  Losses losses;
  CorrelationMap calls(16 << 20);
  RegionTracker regions(calls, losses);
  Store store(Keep::kLatest, size_t{4} << 30, losses, warmer);
  FilterSpec spec;
  spec.kernels = {"*elementwise*"};
  RecordDecoder decoder(api, regions, calls, losses, {.filter = std::make_shared<KernelFilter>(spec)});
  // Launch events of every correlation ID in the buffers, in one open region.
  set_region_mode(kRegionsOn, true);
  reserve_thread_slots();
  const uint64_t step = enter_region(kRegionsOn, region_label_id("step"), nullptr, 0);
  for (uint32_t c = 1; c <= buffers.size() * kPerBuffer; ++c) {
    this_thread_slot()->ring.push({now_ns(), 0, {nullptr}, c, EventKind::kLaunch});
    if (c % 16384 == 0) regions.drain(store);
  }
  regions.drain(store);
  const double t0 = now();
  for (size_t p = 0; p < passes; ++p) {
    Buffer& b = buffers[p % buffers.size()];
    decoder.decode(store, b.data.data(), b.valid);
  }
  const double ns = (now() - t0) / static_cast<double>(passes * kPerBuffer);
  const Decoded out{ns, store.table(TableId::kernels).rows(), store.used_bytes()};
  exit_region(step, 0);
  regions.drain(store);
  if (losses.orphan_correlations != 0 || out.rows != passes * kPerBuffer)
    throw std::runtime_error("wrong: " + std::to_string(out.rows) + " rows of " +
                             std::to_string(passes * kPerBuffer) + " records, " +
                             std::to_string(losses.orphan_correlations.load()) + " orphans");
  return out;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::fprintf(stderr, "usage: decode_bench LIBCUPTI\n");
    return 2;
  }
  const auto api = load_cupti({argv[1], "command line", false});
  const auto warmer = std::make_shared<PageWarmer>();  // as the collector has one
  const auto names = make_names();
  std::vector<Buffer> buffers;
  for (uint32_t i = 0; i < 64; ++i)
    buffers.push_back(make_buffer(names, static_cast<uint32_t>(i * kPerBuffer)));

  std::printf("{\"cupti_version\": %d, \"record_bytes\": %zu, \"row_bytes\": %zu}\n", api->version,
              sizeof(CUpti_ActivityKernel10), table_spec(TableId::kernels).row_bytes());
  std::fflush(stdout);
  std::string what;
  size_t records = 0;
  while (std::cin >> what >> records) {
    const size_t passes = std::max<size_t>(records / kPerBuffer, 1);
    if (what == "bare") {
      std::printf("{\"ns\": %.4f}\n", iterate(*api, buffers, passes));
    } else if (what == "decode") {
      const Decoded d = decode(*api, buffers, passes, warmer);
      std::printf("{\"ns\": %.4f, \"rows\": %zu, \"bytes\": %zu}\n", d.ns, d.rows, d.bytes);
    } else {
      throw std::runtime_error("neither bare nor decode: " + what);
    }
    std::fflush(stdout);
  }
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
