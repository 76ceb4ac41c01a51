// What NVIDIA's cuda_occupancy.h says of random launch configurations: 640 with all that it says, 60,000 with
// the blocks per SM.
//   g++ -std=c++20 -I "$CUDA_INCLUDE" occupancy_reference.cpp -o ref
//   ./ref > occupancy_cuda13.csv && ./ref blocks > occupancy_cuda13_blocks.txt
// cuda_occupancy.h comes with the wheel nvidia-cuda-runtime==13.0.*; opt-in mode, as in
// cuptiprof/data/occupancy.py.
#include <cuda_occupancy.h>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

struct Chip {
  int major, minor, threads, regs, smem_sm, smem_optin, reserved;
};

struct Launch {
  int threads, registers, static_smem, dynamic_smem, carveout;
};

const Chip kChips[] = {
    {7, 0, 2048, 65536, 96, 96, 0},       {7, 5, 1024, 65536, 64, 64, 0},
    {8, 0, 2048, 65536, 164, 163, 1024},  {8, 6, 1536, 65536, 100, 99, 1024},
    {8, 9, 1536, 65536, 100, 99, 1024},   {9, 0, 2048, 65536, 228, 227, 1024},
    {10, 0, 2048, 65536, 228, 227, 1024}, {12, 0, 1536, 65536, 100, 99, 1024},
};

cudaOccResult answer(const Chip& chip, const Launch& launch) {
  cudaOccDeviceProp props{};
  props.computeMajor = chip.major;
  props.computeMinor = chip.minor;
  props.maxThreadsPerBlock = 1024;
  props.maxThreadsPerMultiprocessor = chip.threads;
  props.regsPerBlock = props.regsPerMultiprocessor = chip.regs;
  props.warpSize = 32;
  props.sharedMemPerBlock = 48 * 1024;
  props.sharedMemPerMultiprocessor = chip.smem_sm * 1024;
  props.numSms = 100;
  props.sharedMemPerBlockOptin = chip.smem_optin * 1024;
  props.reservedSharedMemPerBlock = chip.reserved;
  cudaOccFuncAttributes attributes{};
  attributes.maxThreadsPerBlock = 1024;
  attributes.numRegs = launch.registers;
  attributes.sharedSizeBytes = launch.static_smem;
  attributes.partitionedGCConfig = PARTITIONED_GC_OFF;
  attributes.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  attributes.maxDynamicSharedSizeBytes = launch.dynamic_smem;
  cudaOccDeviceState state;
  state.carveoutConfig = launch.carveout == 255 ? SHAREDMEM_CARVEOUT_DEFAULT : launch.carveout;
  cudaOccResult result{};
  if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &props, &attributes, &state, launch.threads,
                                              launch.dynamic_smem) != CUDA_OCC_SUCCESS) {
    std::fprintf(stderr, "no answer for CC %d.%d\n", chip.major, chip.minor);
    std::exit(1);
  }
  return result;
}

// 80 a chip, with all that the header says.
void write_rows() {
  std::mt19937 random(20261121);
  auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  std::printf(
      "cc,threads,registers,static_smem,dynamic_smem,carveout,blocks,warps,regs,smem,ctas,alloc_regs,"
      "alloc_smem\n");
  for (const Chip& chip : kChips) {
    for (int i = 0; i < 80; ++i) {
      Launch l;
      l.threads = pick(0, 3) ? 32 * pick(1, 32) : pick(1, 1024);
      l.registers = pick(1, 255);
      l.static_smem = pick(0, 1) ? 0 : pick(0, 48 * 1024);
      l.dynamic_smem = pick(0, 1) ? 0 : pick(0, (chip.smem_optin + 4) * 1024);
      l.carveout = pick(0, 1) ? 255 : pick(0, 100);
      const cudaOccResult result = answer(chip, l);
      std::printf("%d.%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%zu\n", chip.major, chip.minor, l.threads,
                  l.registers, l.static_smem, l.dynamic_smem, l.carveout,
                  result.activeBlocksPerMultiprocessor, result.blockLimitWarps, result.blockLimitRegs,
                  result.blockLimitSharedMem, result.blockLimitBlocks, result.allocatedRegistersPerBlock,
                  result.allocatedSharedMemPerBlock);
    }
  }
}

// Steele, Lea, Flood, Fast splittable pseudorandom number generators, OOPSLA 2014: the same in a line of
// NumPy.
std::uint64_t splitmix(std::uint64_t at) {
  std::uint64_t z = (at + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// 7,500 a chip, a line each; a character a launch: '0' and the blocks.
void write_blocks() {
  std::uint64_t next = 0;
  for (const Chip& chip : kChips) {
    std::printf("%d.%d ", chip.major, chip.minor);
    for (int i = 0; i < 7500; ++i, next += 8) {
      auto below = [&](int field, int limit) { return static_cast<int>(splitmix(next + field) % limit); };
      Launch l;
      l.threads = 1 + below(0, 1024);
      l.registers = 1 + below(1, 255);
      l.static_smem = below(2, 2) * below(3, 48 * 1024 + 1);
      l.dynamic_smem = below(4, 2) * below(5, (chip.smem_optin + 4) * 1024 + 1);
      l.carveout = below(6, 2) ? 255 : below(7, 101);
      std::putchar('0' + answer(chip, l).activeBlocksPerMultiprocessor);
    }
    std::putchar('\n');
  }
}

int main(int count, char**) {
  if (count > 1)
    write_blocks();
  else
    write_rows();
}
