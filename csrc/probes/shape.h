// The numbers that the kernels and the arithmetic of their counters share. All kernels take 64-bit arguments
// only.
#pragma once

namespace cuptiprof::probes {

constexpr int kChains = 4;               // independent dependency chains of a thread
constexpr int kOpsPerIteration = 64;     // arithmetic instructions of a thread in one turn of its loop
constexpr int kMmaPerIteration = 16;     // tensor-core instructions of a warp in one turn
constexpr int kSharedPerIteration = 16;  // shared-memory instructions of a thread in one turn
constexpr int kSharedWords = 1024;       // words of the array behind them
constexpr int kStraightShort = 256;      // instructions of probe_straight_short beyond its frame
constexpr int kStraightLong = 512;       // and of probe_straight_long: the same frame
constexpr int kLiveRegisters = 96;       // values that probe_spin_registers keeps alive

}  // namespace cuptiprof::probes
