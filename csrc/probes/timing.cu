// Blocks that last as long as they are told, by the GPU's own clock: known durations, known residency.
#include "shape.h"

using namespace cuptiprof::probes;
typedef unsigned long long u64;
typedef unsigned int u32;

namespace {

__device__ __forceinline__ u64 global_time() {
  u64 t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
  return t;
}

__device__ __forceinline__ void spin(u64 ns) {
  const u64 start = global_time();
  while (global_time() - start < ns) {
  }
}

}  // namespace

extern "C" __global__ void probe_spin(u64 ns) { spin(ns); }

// The same with dynamic shared memory, which the launch chooses.
extern "C" __global__ void probe_spin_shared(u64 ns) {
  extern __shared__ u32 words[];
  if (threadIdx.x == 0) *const_cast<volatile u32*>(words) = 0;
  spin(ns);
}

// The same with kLiveRegisters values that must survive the wait.
extern "C" __global__ void __launch_bounds__(256) probe_spin_registers(u32* memory, u64 ns) {
  volatile u32* p = memory + threadIdx.x;
  u32 v[kLiveRegisters];
#pragma unroll
  for (int i = 0; i < kLiveRegisters; ++i) v[i] = p[i * 256];
  spin(ns);
#pragma unroll
  for (int i = 0; i < kLiveRegisters; ++i) p[i * 256] = v[i];
}

// One thread adds 1: what ran, and how often.
extern "C" __global__ void probe_count(u32* counter) {
  if (threadIdx.x == 0 && blockIdx.x == 0) atomicAdd(counter, 1u);
}
