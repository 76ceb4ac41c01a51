// Writes occupancy_cuda13.csv: random launch configurations and what NVIDIA's cuda_occupancy.h says of them.
//   g++ -std=c++20 -I "$CUDA_INCLUDE" occupancy_reference.cpp -o ref && ./ref > occupancy_cuda13.csv
// cuda_occupancy.h comes with the wheel nvidia-cuda-runtime==13.0.*; opt-in mode, as in cuptiprof/data/occupancy.py.
#include <climits>
#include <cstdio>
#include <cuda_occupancy.h>
#include <random>

struct Chip {
  int major, minor, threads, regs, smem_sm, smem_optin, reserved;
};

int main() {
  const Chip chips[] = {
      {7, 0, 2048, 65536, 96, 96, 0},      {7, 5, 1024, 65536, 64, 64, 0},
      {8, 0, 2048, 65536, 164, 163, 1024}, {8, 6, 1536, 65536, 100, 99, 1024},
      {8, 9, 1536, 65536, 100, 99, 1024},  {9, 0, 2048, 65536, 228, 227, 1024},
      {10, 0, 2048, 65536, 228, 227, 1024}, {12, 0, 1536, 65536, 100, 99, 1024},
  };
  std::mt19937 random(20261121);
  auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  std::printf("cc,threads,registers,static_smem,dynamic_smem,carveout,blocks,warps,regs,smem,ctas,alloc_regs,"
              "alloc_smem\n");
  for (const Chip& chip : chips) {
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
    for (int i = 0; i < 80; ++i) {
      const int threads = pick(0, 3) ? 32 * pick(1, 32) : pick(1, 1024);
      const int registers = pick(1, 255);
      const int static_smem = pick(0, 1) ? 0 : pick(0, 48 * 1024);
      const int dynamic_smem = pick(0, 1) ? 0 : pick(0, (chip.smem_optin + 4) * 1024);
      const int carveout = pick(0, 1) ? 255 : pick(0, 100);
      cudaOccFuncAttributes attributes{};
      attributes.maxThreadsPerBlock = 1024;
      attributes.numRegs = registers;
      attributes.sharedSizeBytes = static_smem;
      attributes.partitionedGCConfig = PARTITIONED_GC_OFF;
      attributes.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
      attributes.maxDynamicSharedSizeBytes = dynamic_smem;
      cudaOccDeviceState state;
      state.carveoutConfig = carveout == 255 ? SHAREDMEM_CARVEOUT_DEFAULT : carveout;
      cudaOccResult result{};
      if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &props, &attributes, &state, threads, dynamic_smem) !=
          CUDA_OCC_SUCCESS) {
        std::fprintf(stderr, "no answer for CC %d.%d\n", chip.major, chip.minor);
        return 1;
      }
      std::printf("%d.%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%zu\n", chip.major, chip.minor, threads, registers,
                  static_smem, dynamic_smem, carveout, result.activeBlocksPerMultiprocessor,
                  result.blockLimitWarps, result.blockLimitRegs, result.blockLimitSharedMem, result.blockLimitBlocks,
                  result.allocatedRegistersPerBlock, result.allocatedSharedMemPerBlock);
    }
  }
}
