"""Every threshold of advice and of the rules on counters, with where it is from: the only list."""

from __future__ import annotations

from dataclasses import dataclass

NCU = "Nsight Compute's rule {}"
_PLUGIN = "recommendations of TensorBoard's plugin for torch.profiler"
_HTA = "HTA 0.5.0, {}"
_OURS = "ours: {}"


@dataclass(frozen=True)
class Threshold:
    """``value`` in ``unit``; ``what`` is beyond it, ``source`` where the number is from."""

    value: float
    unit: str
    what: str
    source: str


MATTERS = Threshold(
    0.1,
    "%",
    "of the wall time that anything said must be able to save",
    _OURS.format("the rest of what was recorded is another matter"),
)
WORTH = Threshold(
    1.0,
    "%",
    "of the time from first to last work of the GPUs (as all shares below) that anything said must be able to save",
    _OURS.format("less is no line worth"),
)
IDLE = Threshold(
    5.0, "%", "of that time that a cause of idle time takes, the data loader among them", f"{_PLUGIN} (data loader)"
)
OUTSIDE = Threshold(
    50.0,
    "%",
    "of the wall time before the first and after the last work of a GPU",
    f"{_PLUGIN} (utilisation below 50 %)",
)
UTILISATION = Threshold(
    50.0, "%", "of that time in which any kernel ran, below which more work at a time is what to try", _PLUGIN
)
SMALL_GAP = Threshold(
    100_000,
    "ns",
    "idle at a time, up to which the launch itself is late, beyond which the host did something else",
    _HTA.format("launch_delay_cutoff"),
)
KERNEL_WAIT = Threshold(
    30_000,
    "ns",
    "idle before work that was launched in time: what it takes to begin the next kernel",
    _HTA.format("consecutive_kernel_delay"),
)
COMMUNICATION = Threshold(10.0, "%", "of that time that communication takes which no computation hides", _PLUGIN)
SMALL_COPY = Threshold(
    65_536,
    "bytes",
    "a copy, below which its time is not that of its bytes",
    _OURS.format("2 us at 32 GB/s, what a copy takes at least"),
)
OCCUPANCY_GAIN = Threshold(
    15.0,
    "%",
    "estimated occupancy up to which more of it may be expected to help",
    "PyTorch's introduction to the plugin's GPU metrics (gains up to about 15 %)",
)
TENSOR_SHARE = Threshold(
    50.0,
    "%",
    "of an operator's kernel time on tensor cores, below which it is said not to use them",
    _OURS.format("what is mostly on them uses them; the plugin asks for any kernel at all"),
)
TENSOR_CC = Threshold(7.0, "", "compute capability from which on there are tensor cores", _PLUGIN)
OUTLIER_RANGES = Threshold(
    3.0, "interquartile ranges", "above the third quartile: a step that stands out", 'Tukey 1977, "far out"'
)
OUTLIER_RATIO = Threshold(
    1.5,
    "",
    "times the median that a step must take to stand out, however even the others are",
    _OURS.format("steps that hardly differ have a range of nothing"),
)
OUTLIER_STEPS = Threshold(5, "steps", "of which one can stand out", _OURS.format("fewer have no quartiles"))
THROTTLED = Threshold(
    5.0,
    "%",
    "of the SM clock that is lost while something holds it",
    _OURS.format("boost clocks move by less as the load changes"),
)
HELD = Threshold(
    5.0,
    "%",
    "of a step (or of the event, if that is shorter) from which on something is said to have held its clocks",
    _OURS.format("readings know when it began and ended to half their interval"),
)
MEMORY_FULL = Threshold(90.0, "%", "of the GPU's memory at the peak", _PLUGIN)
FRAGMENTED = Threshold(
    30.0,
    "%",
    "of the memory that the allocator had reserved at most, free within it",
    _OURS.format("beside memory that is nearly full"),
)
TAIL = Threshold(20.0, "%", "of a kernel's time that a partial last wave can take", NCU.format("LaunchConfiguration"))
WARP = Threshold(32, "threads", "of which a block should be a multiple", NCU.format("LaunchConfiguration"))
BLOCKS_PER_SM = Threshold(
    2.0,
    "blocks",
    "an SM, below which one that waits leaves it with nothing to do (said, not advised)",
    NCU.format("LaunchConfiguration"),
)

THROUGHPUT_LOW = Threshold(
    60.0,
    "%",
    "of peak, with compute and memory both below: bound by latency",
    f"nvprof's guided analysis; {NCU.format('SOLBottleneck')}",
)
THROUGHPUT_HIGH = Threshold(80.0, "%", "of peak, at which compute or memory is used well", NCU.format("SOLBottleneck"))
THROUGHPUT_APART = Threshold(
    10.0, "points", "between compute and memory, at which the larger is what bounds", NCU.format("SOLBottleneck")
)
ISSUE_LOW = Threshold(
    0.6, "instructions a cycle and scheduler", "below it issue slots are wasted", NCU.format("IssueSlotUtilization")
)
WARPS_LOW = Threshold(
    0.8, "", "of the warps that the launch allows, below which too few are active", NCU.format("IssueSlotUtilization")
)
STALL_ISSUE = Threshold(
    0.8, "instructions a cycle and scheduler", "below it reasons of stalls are said", NCU.format("CPIStall")
)
STALL_SHARE = Threshold(
    0.3, "", "of a warp's time between two instructions that one reason takes", NCU.format("CPIStall")
)
OCCUPANCY_THEORETICAL = Threshold(
    80.0, "%", "theoretical occupancy, below which it is said", NCU.format("TheoreticalOccupancy")
)
OCCUPANCY_APART = Threshold(10.0, "points", "achieved below theoretical occupancy", NCU.format("AchievedOccupancy"))
ACTIVE_THREADS = Threshold(
    24.0, "threads", "of 32 that an instruction runs for, below which warps diverge", NCU.format("ThreadDivergence")
)
PIPE_LOW = Threshold(
    20.0,
    "%",
    "of its cycles in which the busiest pipe is active, below which all are idle",
    NCU.format("HighPipeUtilization"),
)
PIPE_HIGH = Threshold(
    80.0, "%", "of its cycles, at which the busiest pipe is the bottleneck", NCU.format("HighPipeUtilization")
)
SM_BUSY = Threshold(
    80.0,
    "%",
    "of the peak of instructions, from which on a slow pipe can be what bounds",
    NCU.format("SlowPipeLimiter"),
)
ISSUED_LOW = Threshold(20.0, "%", "of the cycles in which an SM issues, below it few", NCU.format("SlowPipeLimiter"))
ISSUED_APART = Threshold(
    25.0, "points", "between the SM that issues most and their mean", NCU.format("SlowPipeLimiter")
)
FP64_HIGH = Threshold(15.0, "%", "of the FP64 peak, beside little FP32", NCU.format("SOLFPRoofline"))
FP_UNFUSED = Threshold(0.1, "", "of the FP instructions that fusing could save", NCU.format("FPInstructions"))
BANK_CONFLICTS = Threshold(
    10.0, "%", "of the wavefronts of shared memory that are conflicts of banks", NCU.format("SharedMemoryConflicts")
)
SECTOR_BYTES = Threshold(
    32.0,
    "bytes",
    "of a sector of 32 that global loads or stores use, where the most possible was not counted",
    NCU.format("MemoryCacheAccessPattern"),
)
LOCAL_HIT = Threshold(
    80.0, "%", "of local loads or stores that hit in L1, up to which local memory costs", NCU.format("LocalMemoryUsage")
)
L2_BUSY = Threshold(
    50.0, "%", "of the peak of L2 that L1 asks for, above which misses matter", NCU.format("MemoryApertureUsage")
)
APERTURE_MISSES = Threshold(
    40.0, "%", "of these misses that another memory than the GPU's answers", NCU.format("MemoryApertureUsage")
)
COMPRESSION_LOW = Threshold(
    20.0, "%", "of what L2 tries to compress that it can, below it too little", NCU.format("MemoryL2Compression")
)
COMPRESSION_TRAFFIC = Threshold(
    4.0, "times", "the bytes written that go to the compression unit", NCU.format("MemoryL2Compression")
)
IMBALANCE = Threshold(5.0, "%", "of the time that an even load of the SMs could save", NCU.format("WorkloadImbalance"))


def all_thresholds() -> dict[str, Threshold]:
    """By name, in order."""
    return {name: value for name, value in globals().items() if isinstance(value, Threshold)}
