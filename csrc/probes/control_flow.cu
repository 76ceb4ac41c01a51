// Branches, atomics, and kernels without a branch whose lengths differ by a known number of instructions.
#include "shape.h"

using namespace cuptiprof::probes;
typedef unsigned long long u64;
typedef unsigned int u32;

namespace {

__device__ __forceinline__ u64 thread_id() { return u64(blockIdx.x) * blockDim.x + threadIdx.x; }

__device__ __forceinline__ float fma_chain(float a, float b, int n) {
#pragma unroll
  for (int i = 0; i < n; ++i) asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(a) : "f"(b));
  return a;
}

template <int kCount>
__device__ __forceinline__ void straight(float* out, u64 operand) {
  const float b = __uint_as_float(u32(operand));
  float a[kChains];
#pragma unroll
  for (int k = 0; k < kChains; ++k) a[k] = __uint_as_float(threadIdx.x + k);
#pragma unroll
  for (int n = 0; n < kCount; ++n) asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(a[n % kChains]) : "f"(b));
#pragma unroll
  for (int k = 0; k < kChains; ++k) out[thread_id() * kChains + k] = a[k];
}

}  // namespace

// The lanes of a warp go through the same loop in `ways` groups, one group after the other; 1 way: no
// divergence.
extern "C" __global__ void probe_branch(float* out, u64 iterations, u64 ways, u64 operand) {
  const float b = __uint_as_float(u32(operand));
  float a = __uint_as_float(threadIdx.x);
  const u32 mine = (threadIdx.x % 32) % u32(ways);
#pragma unroll 1
  for (u32 way = 0; way < u32(ways); ++way) {
    if (way == mine) {
#pragma unroll 1
      for (u64 i = 0; i < iterations; ++i) a = fma_chain(a, b, kOpsPerIteration);
    }
    __syncwarp();
  }
  out[thread_id()] = a;
}

extern "C" __global__ void probe_straight_short(float* out, u64 operand) {
  straight<kStraightShort>(out, operand);
}
extern "C" __global__ void probe_straight_long(float* out, u64 operand) {
  straight<kStraightLong>(out, operand);
}

// Reductions: each thread adds 1 to a word of its own, `iterations` times.
extern "C" __global__ void probe_reduction(u32* out, u64 iterations) {
  u32* p = out + thread_id();
#pragma unroll 1
  for (u64 i = 0; i < iterations; ++i) asm volatile("red.global.add.u32 [%0], 1;" ::"l"(p) : "memory");
}

// Atomics that return: the next address depends on the value (its top bit, never set).
extern "C" __global__ void probe_atomic(u32* out, u64 iterations) {
  u32* p = out + thread_id();
#pragma unroll 1
  for (u64 i = 0; i < iterations; ++i) {
    u32 old;
    asm volatile("atom.global.add.u32 %0, [%1], 1;" : "=r"(old) : "l"(p) : "memory");
    p += old >> 31;
  }
}
