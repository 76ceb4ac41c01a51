// Chains of one arithmetic instruction: exactly kOpsPerIteration of it a thread and turn, and none elsewhere
// in the kernel. The results are stored, or the assembler would drop the chains; operands come as bits in an
// argument, or it would simplify them.
#include "shape.h"

using namespace cuptiprof::probes;
typedef unsigned long long u64;
typedef unsigned int u32;

namespace {
__device__ __forceinline__ u64 thread_id() { return u64(blockIdx.x) * blockDim.x + threadIdx.x; }
}  // namespace

// Word: u32 for a float or two halves, u64 for a double; BITS and LETTER its size and asm constraint.
#define CHAIN_KERNEL(name, Word, BITS, LETTER, type, instruction)                                       \
  extern "C" __global__ void probe_##name(Word* out, u64 iterations, u64 operand) {                     \
    const Word b = static_cast<Word>(operand);                                                          \
    Word a[kChains];                                                                                    \
    _Pragma("unroll") for (int k = 0; k < kChains; ++k) a[k] = b + static_cast<Word>(threadIdx.x + k);  \
    _Pragma("unroll 1") for (u64 i = 0; i < iterations; ++i) {                                          \
      _Pragma("unroll") for (int n = 0; n < kOpsPerIteration; ++n) asm volatile(                        \
          "{ .reg ." type " x, y; mov.b" BITS " x, %0; mov.b" BITS " y, %1; " instruction " mov.b" BITS \
          " %0, x; }" : "+" LETTER(a[n % kChains]) : LETTER(b));                                        \
    }                                                                                                   \
    _Pragma("unroll") for (int k = 0; k < kChains; ++k) out[thread_id() * kChains + k] = a[k];          \
  }
#define CHAIN_WORD(name, type, instruction) CHAIN_KERNEL(name, u32, "32", "r", type, instruction)
#define CHAIN_LONG(name, instruction) CHAIN_KERNEL(name, u64, "64", "l", "f64", instruction)

CHAIN_WORD(fma_f32, "f32", "fma.rn.f32 x, x, y, y;")
CHAIN_WORD(add_f32, "f32", "add.rn.f32 x, x, y;")
CHAIN_WORD(mul_f32, "f32", "mul.rn.f32 x, x, y;")
CHAIN_WORD(fma_f16, "b32", "fma.rn.f16x2 x, x, y, y;")
CHAIN_WORD(add_f16, "b32", "add.rn.f16x2 x, x, y;")
CHAIN_WORD(mul_f16, "b32", "mul.rn.f16x2 x, x, y;")
CHAIN_LONG(fma_f64, "fma.rn.f64 x, x, y, y;")
CHAIN_LONG(add_f64, "add.rn.f64 x, x, y;")
CHAIN_LONG(mul_f64, "mul.rn.f64 x, x, y;")

// Half-precision matrix products with float sums: m16n8k16 from Ampere on, m16n8k8 on Turing; one instruction
// each.
extern "C" __global__ void probe_mma_f16(float* out, u64 iterations, u64 operand) {
  const u32 a = u32(operand);
  float d[kChains][4] = {};
#pragma unroll 1
  for (u64 i = 0; i < iterations; ++i) {
#pragma unroll
    for (int n = 0; n < kMmaPerIteration; ++n) {
      float* x = d[n % kChains];
#if __CUDA_ARCH__ >= 800
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, "
          "{%0,%1,%2,%3};"
          : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3])
          : "r"(a));
#else
      asm volatile(
          "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4}, {%4}, {%0,%1,%2,%3};"
          : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3])
          : "r"(a));
#endif
    }
  }
#pragma unroll
  for (int k = 0; k < kChains * 4; ++k) out[thread_id() * kChains * 4 + k] = d[k / 4][k % 4];
}
