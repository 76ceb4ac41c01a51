// Shared memory: lane i of a warp touches word i * ways, so that `ways` lanes meet in each bank they use.
#include "shape.h"

using namespace cuptiprof::probes;
typedef unsigned long long u64;
typedef unsigned int u32;

namespace {
__device__ __forceinline__ u32 address_of(const u32* p) { return u32(__cvta_generic_to_shared(p)); }
}  // namespace

extern "C" __global__ void probe_shared_load(u32* out, u64 iterations, u64 ways) {
  __shared__ u32 words[kSharedWords];
  for (u32 i = threadIdx.x; i < kSharedWords; i += blockDim.x) words[i] = 0;
  __syncthreads();
  const u32 p = address_of(words + (threadIdx.x % 32) * u32(ways) % kSharedWords);
  u32 sum = 0;
#pragma unroll 1
  for (u64 i = 0; i < iterations; ++i) {
#pragma unroll
    for (int n = 0; n < kSharedPerIteration; ++n) {
      u32 v;
      asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(v) : "r"(p));
      sum |= v;
    }
  }
  out[u64(blockIdx.x) * blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void probe_shared_store(u32* out, u64 iterations, u64 ways) {
  __shared__ u32 words[kSharedWords];
  const u32 p = address_of(words + (threadIdx.x % 32) * u32(ways) % kSharedWords);
#pragma unroll 1
  for (u64 i = 0; i < iterations; ++i) {
#pragma unroll
    for (int n = 0; n < kSharedPerIteration; ++n)
      asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(p), "r"(u32(n)) : "memory");
  }
  __syncthreads();
  out[u64(blockIdx.x) * blockDim.x + threadIdx.x] = words[0];
}
