"""What the counters of one kernel say about it: Nsight Compute's rules, with its thresholds (``thresholds.py``).

Facts are metrics by their perfworks name (or nvprof's, see ``with_synonyms``) and what is known of the launch, by the names
below. A rule whose facts are missing says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cuptiprof.analysis import thresholds as limits
from cuptiprof.analysis.kernel_rules.l2_rules import aperture_usage, l2_compression
from cuptiprof.analysis.kernel_rules.rule_message import Facts, Message, messages

WAVES, GRID, BLOCK, SMS = "waves per SM", "blocks", "threads per block", "SMs"
THEORETICAL, MAX_WARPS = "theoretical occupancy %", "warps per scheduler"

COMPUTE = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
ISSUE_ACTIVE = "smsp__issue_active.avg.per_cycle_active"
WARPS_ACTIVE = "smsp__warps_active.avg.per_cycle_active"
WARPS_ELIGIBLE = "smsp__warps_eligible.avg.per_cycle_active"
LATENCY = "smsp__average_warp_latency_per_inst_issued.ratio"
STALL = "smsp__average_warps_issue_stalled_", "_per_issue_active.ratio"
L1TEX = "l1tex__throughput.avg.pct_of_peak_sustained_active"
L2 = "lts__throughput.avg.pct_of_peak_sustained_elapsed"
DRAM = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
THREADS = "smsp__thread_inst_executed_per_inst_executed.ratio"
THREADS_ON = "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio"
ISSUED, ISSUED_MOST = (f"sm__inst_issued.{of}.pct_of_peak_sustained_active" for of in ("avg", "max"))
INSTRUCTIONS = "sm__instruction_throughput.avg.pct_of_peak_sustained_active"
CYCLES_ACTIVE, CYCLES_MOST, CYCLES_ELAPSED = "sm__cycles_active.avg", "sm__cycles_active.max", "sm__cycles_elapsed.avg"
_PIPES = (("sm__pipe_", "sm__inst_executed_pipe_"), ".avg.pct_of_peak_sustained_active")
_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"
_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
_SECTORS = "smsp__sass_average_data_bytes_per_sector_mem_global_op_{}."
_HITS = ("l1tex__t_sector_pipe_lsu_mem_{}_op_{}_hit_rate.pct", "lts__t_sector_op_{}_hit_rate.pct")
_LOCAL_RATE = "l1tex__t_sectors_pipe_lsu_mem_local_op_{}.sum.per_second"
_FP = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum.per_cycle_elapsed"
_FP_PEAK = "sm__sass_thread_inst_executed_op_{}fma_pred_on.sum.peak_sustained"
_OPERATIONS = (("ld", "loads", "read"), ("st", "stores", "write"))
_FLOATS = (("f", "FP32"), ("d", "FP64"))

# The same quantity under another name: (name, other name, factor to get from the other to the first).
_SYNONYMS = (
    (OCCUPANCY, "achieved_occupancy", 100.0),
    (ISSUE_ACTIVE, "smsp__issue_active.avg.pct_of_peak_sustained_active", 0.01),
    (ISSUE_ACTIVE, "issue_slot_utilization", 0.01),
    (WARPS_ELIGIBLE, "eligible_warps_per_cycle", 0.25),
    (THREADS, "warp_execution_efficiency", 0.32),
    (THREADS_ON, "warp_nonpred_execution_efficiency", 0.32),
    (_SECTORS.format("ld") + "ratio", "gld_efficiency", 0.32),
    (_SECTORS.format("st") + "ratio", "gst_efficiency", 0.32),
    (_HITS[0].format("local", "ld"), "local_hit_rate", 1.0),
    *((name, name.replace("_active", "_elapsed"), 1.0) for name in (ISSUED, ISSUED_MOST, INSTRUCTIONS)),
)
_NVPROF_STALL = "stall_"


def with_synonyms(facts: Facts) -> dict[str, float]:
    """``facts`` with perfworks names for what was measured under another name only."""
    out = dict(facts)
    for name, other, factor in _SYNONYMS:
        if name not in out and other in out:
            out[name] = out[other] * factor
    return out


def evaluate(facts: Facts) -> list[Message]:
    """All findings, in the order of the sections that they belong to. Facts that are NaN must be left out."""
    known = with_synonyms(facts)
    return [message for rule in RULES for message in rule(known)]


def sol_bottleneck(facts: Facts) -> Iterator[Message]:
    if COMPUTE not in facts or MEMORY not in facts:
        return
    compute, memory = facts[COMPUTE], facts[MEMORY]
    larger, busy = ("compute", "the compute pipelines") if compute >= memory else ("memory", "the memory system")
    say = messages("SOLBottleneck", "SpeedOfLight")
    if max(compute, memory) >= limits.THROUGHPUT_HIGH.value:
        yield say("INF", f"{larger} reaches {max(compute, memory):.1f} % of its peak: the kernel uses {busy} well. "
                         f"To go faster, move work from {larger} to other units or do less of it.")  # fmt: skip
    elif max(compute, memory) < limits.THROUGHPUT_LOW.value:
        if facts.get(WAVES, 1.0) < 1:
            yield say("OPT", f"The grid is too small to fill the GPU: {facts[WAVES]:.1f} waves on all SMs.")
        else:
            yield say("OPT", "Bound by instruction and memory latency: compute and memory are both below "
                             f"{limits.THROUGHPUT_LOW.value:.0f} % of peak "
                             f"({compute:.1f} % and {memory:.1f} %). See SchedulerStats and WarpStateStats.")  # fmt: skip
    elif abs(compute - memory) >= limits.THROUGHPUT_APART.value:
        yield say("OPT", f"{larger} is used more than the rest ({compute:.1f} % compute, {memory:.1f} % memory): "
                         f"look at {busy} first.")  # fmt: skip
    else:
        yield say(
            "INF",
            f"compute and memory are in balance ({compute:.1f} % and {memory:.1f} %): to go faster, both must do less.",
        )


def issue_slot_utilization(facts: Facts) -> Iterator[Message]:
    if ISSUE_ACTIVE not in facts or facts[ISSUE_ACTIVE] >= limits.ISSUE_LOW.value:
        return
    issued = facts[ISSUE_ACTIVE]
    text = f"A scheduler issues an instruction in {100 * issued:.1f} % of its cycles"
    active = facts.get(WARPS_ACTIVE)
    if active is not None and active < 1:
        text += (
            f"; it has less than one active warp ({active:.2f}): launch more, or spread the work evenly over the SMs."
        )
    elif (
        active is not None
        and MAX_WARPS in facts
        and facts[MAX_WARPS] > 0
        and active / facts[MAX_WARPS] < limits.WARPS_LOW.value
    ):
        text += f"; of {facts[MAX_WARPS]:.1f} warps that the launch allows, {active:.2f} are active: see the achieved occupancy."
    else:
        eligible = f" (eligible: {facts[WARPS_ELIGIBLE]:.2f} warps a cycle)" if WARPS_ELIGIBLE in facts else ""
        text += f"{eligible}: its warps wait most of the time. WarpStateStats says for what."
    yield messages("IssueSlotUtilization", "SchedulerStats")("OPT", text, _capped(100 * (1 - issued), facts))


def cpi_stall(facts: Facts) -> Iterator[Message]:
    if ISSUE_ACTIVE not in facts or facts[ISSUE_ACTIVE] >= limits.STALL_ISSUE.value:
        return
    for reason, share in sorted(_stalls(facts).items(), key=lambda item: -item[1]):
        if share > limits.STALL_SHARE.value:
            text = f"A warp spends {100 * share:.1f} % of the time between two instructions stalled on {reason}."
            yield messages("CPIStall", "WarpStateStats")("OPT", text, _capped(100 * share, facts))


def launch_configuration(facts: Facts) -> Iterator[Message]:
    say = messages("LaunchConfiguration", "LaunchStats")
    block, grid, sms = facts.get(BLOCK, 0), facts.get(GRID, 0), facts.get(SMS, 0)
    if block % 32:
        whole = -(-block // 32) * 32
        yield say("OPT", f"{block:.0f} threads a block are no multiple of the warp size 32: {whole - block:.0f} lanes of the "
                         "last warp idle.", 100 * (1 - block / whole))  # fmt: skip
    if grid and sms and grid < sms:
        yield say("OPT", f"{grid:.0f} blocks are fewer than the {sms:.0f} SMs: {sms - grid:.0f} SMs idle.",
                  100 * (sms - grid) / sms)  # fmt: skip
    elif grid and sms and grid < limits.BLOCKS_PER_SM.value * sms:
        yield say("INF", f"{grid:.0f} blocks are less than two for each of the {sms:.0f} SMs: an SM has nothing to do while "
                         "its block waits at a barrier.")  # fmt: skip
    waves = facts.get(WAVES, 0.0)
    whole = waves // 1
    if whole >= 1 and waves > whole and 100 / (1 + whole) >= limits.TAIL.value:
        yield say("OPT", f"Tail effect: {whole:.0f} full waves and a partial one ({waves:.2f} in all); the last wave can cost up to "
                         f"{100 / (1 + whole):.1f} % of the time.", 100 / (1 + whole))  # fmt: skip


def theoretical_occupancy(facts: Facts) -> Iterator[Message]:
    theoretical = facts.get(THEORETICAL)
    if theoretical is None or theoretical >= limits.OCCUPANCY_THEORETICAL.value:
        return
    say = messages("TheoreticalOccupancy", "Occupancy")
    yield say("OPT", f"The launch allows {theoretical:.1f} % of the warps that an SM could hold (see the block limits).",
              100 - theoretical)  # fmt: skip


def achieved_occupancy(facts: Facts) -> Iterator[Message]:
    theoretical, achieved = facts.get(THEORETICAL), facts.get(OCCUPANCY)
    if (
        theoretical is None
        or achieved is None
        or theoretical <= 0
        or theoretical - achieved <= limits.OCCUPANCY_APART.value
    ):
        return
    say = messages("AchievedOccupancy", "Occupancy")
    yield say("OPT", f"Achieved occupancy is {achieved:.1f} %, the launch allows {theoretical:.1f} %: warps of a block or blocks of "
                     "the grid differ in length, or the kernel is too short to fill the SMs.",
              100 * (1 - achieved / theoretical))  # fmt: skip


def thread_divergence(facts: Facts) -> Iterator[Message]:
    for name, what in ((THREADS, "runs for"), (THREADS_ON, "has an effect for")):
        value = facts.get(name)
        if value is not None and 0 < value < limits.ACTIVE_THREADS.value:
            text = f"An instruction {what} {value:.1f} of the 32 threads of a warp: they branch differently, or blocks are no whole warps."
            yield messages("ThreadDivergence", "WarpStateStats")(
                "OPT", text, (32 - value) / 32 * facts.get(COMPUTE, 100.0)
            )
            return


def pipe_utilization(facts: Facts) -> Iterator[Message]:
    before, after = _PIPES
    pipes = {name: value for name, value in facts.items() if name.startswith(before) and name.endswith(after)}
    if not pipes:
        return
    pipe = max(pipes, key=lambda name: pipes[name])
    busy, shown = pipes[pipe], pipe.removesuffix(after).partition("pipe_")[2].removesuffix("_cycles_active")
    say = messages("HighPipeUtilization", "ComputeWorkloadAnalysis")
    if busy < limits.PIPE_LOW.value:
        yield say("OPT", f"All pipes are little used: the busiest, {shown}, in {busy:.1f} % of its cycles. The kernel waits, or is too "
                         "small.", 100 - busy)  # fmt: skip
    elif busy >= limits.PIPE_HIGH.value:
        yield say("INF", f"The pipe {shown} is busy in {busy:.1f} % of its cycles: it is the bottleneck.")


def slow_pipe(facts: Facts) -> Iterator[Message]:
    busy, issued, most = facts.get(INSTRUCTIONS), facts.get(ISSUED), facts.get(ISSUED_MOST)
    if busy is None or issued is None or most is None or most <= 0:
        return
    if busy >= limits.SM_BUSY.value and issued < limits.ISSUED_LOW.value and most - issued > limits.ISSUED_APART.value:
        text = f"A slow pipe may hold the others up: SMs are busy to {busy:.1f} %, yet issue in {issued:.1f} % of the cycles, the busiest SM in {most:.1f} %."
        yield messages("SlowPipeLimiter", "ComputeWorkloadAnalysis")(
            "OPT", text, (most - issued) / most * facts.get(COMPUTE, 100.0)
        )


def fp_roofline(facts: Facts) -> Iterator[Message]:
    used = {}
    for letter, _ in _FLOATS:
        counted = [facts.get(_FP.format(f"{letter}{op}")) for op in ("add", "mul", "fma")]
        peak = facts.get(_FP_PEAK.format(letter), 0.0)
        add, mul, fma = counted
        if add is None or mul is None or fma is None or peak <= 0:
            return
        used[letter] = 100 * (add + mul + 2 * fma) / (2 * peak)
    if used["f"] < limits.THROUGHPUT_LOW.value and used["d"] > limits.FP64_HIGH.value:
        text = f"FP64 works at {used['d']:.1f} % of its peak, FP32 at {used['f']:.1f} %: where FP32 is exact enough, it is many times faster."
        gain = 100 * (1 - facts[_FP_PEAK.format("d")] / facts[_FP_PEAK.format("f")]) * min(used["d"], 100) / 100
        yield messages("SOLFPRoofline", "SpeedOfLight_RooflineChart")("OPT", text, max(gain, 0.0))


def fp_instructions(facts: Facts) -> Iterator[Message]:
    for letter, shown in _FLOATS:
        add, mul, fma = (facts.get(_FP.format(f"{letter}{op}")) for op in ("add", "mul", "fma"))
        if add is None or mul is None or fma is None or add + mul + fma <= 0:
            continue
        ratio = (add + mul) / (add + mul + fma) / 2
        peak = facts.get(_FP_PEAK.format(letter), 0.0)
        if ratio > limits.FP_UNFUSED.value and peak > 0:
            text = f"Of the {shown} instructions {200 * ratio:.0f} % are additions and multiplications that are not fused: as pairs they would be half as many."
            yield messages("FPInstructions", "InstructionStats")(
                "OPT", text, 100 * ratio * min((add + mul + fma) / peak, 1.0)
            )


def bank_conflicts(facts: Facts) -> Iterator[Message]:
    for op, shown, _ in _OPERATIONS:
        conflicts, waves = facts.get(_CONFLICTS.format(op)), facts.get(_WAVEFRONTS.format(op), 0.0)
        if conflicts is None or waves <= 0:
            continue
        share = min(conflicts / waves, 1.0)
        if 100 * share >= limits.BANK_CONFLICTS.value:
            text = f"{100 * share:.1f} % of the wavefronts of shared {shown} are conflicts of banks."
            yield messages("SharedMemoryConflicts", "MemoryWorkloadAnalysis_Tables")(
                "OPT", text, share * facts.get(L1TEX, 100.0)
            )


def access_pattern(facts: Facts) -> Iterator[Message]:
    for op, shown, direction in _OPERATIONS:
        used = facts.get(_SECTORS.format(op) + "ratio")
        most = facts.get(_SECTORS.format(op) + "max_rate", limits.SECTOR_BYTES.value)
        if used is None or most <= 0 or not 0 < used < most:
            continue
        missed = 1 - facts.get(_HITS[0].format("global", op), 0.0) / 100
        further = missed * (1 - facts.get(_HITS[1].format(direction), 0.0) / 100)
        reached = ((L1TEX, 1.0), (L2, missed), (DRAM, further))
        levels = [facts[level] * part for level, part in reached if level in facts]
        busiest = max(levels, default=facts.get(MEMORY, 100.0))
        text = f"Global {shown} use {used:.1f} of {most:.1f} bytes of a sector: neighbouring threads do not touch neighbouring addresses."
        yield messages("MemoryCacheAccessPattern", "MemoryWorkloadAnalysis_Tables")(
            "OPT", text, (1 - used / most) * min(busiest, 100.0)
        )


def local_memory(facts: Facts) -> Iterator[Message]:
    for op, shown, _ in _OPERATIONS:
        hit = facts.get(_HITS[0].format("local", op))
        if hit is not None and hit <= limits.LOCAL_HIT.value and facts.get(_LOCAL_RATE.format(op), 0.0) > 0:
            text = f"Local {shown} (registers that did not suffice, arrays indexed at run time) hit L1 in {hit:.1f} % of cases."
            yield messages("LocalMemoryUsage", "MemoryWorkloadAnalysis_Tables")("OPT", text)


def workload_imbalance(facts: Facts) -> Iterator[Message]:
    active, most, elapsed = facts.get(CYCLES_ACTIVE), facts.get(CYCLES_MOST), facts.get(CYCLES_ELAPSED)
    if active is None or most is None or elapsed is None or most <= 0 or elapsed <= 0:
        return
    gain = 100 * (most - active) / most * min(most / elapsed, 1.0)
    if gain >= limits.IMBALANCE.value:
        text = f"The busiest SM is active for {most:.0f} cycles, the mean for {active:.0f}: blocks differ in length, or the last ones run alone."
        yield messages("WorkloadImbalance", "WorkloadDistribution")("OPT", text, gain)


RULES: tuple[Callable[[Facts], Iterator[Message]], ...] = (
    sol_bottleneck,
    fp_roofline,
    pipe_utilization,
    slow_pipe,
    aperture_usage,
    l2_compression,
    access_pattern,
    bank_conflicts,
    local_memory,
    issue_slot_utilization,
    cpi_stall,
    thread_divergence,
    fp_instructions,
    launch_configuration,
    theoretical_occupancy,
    achieved_occupancy,
    workload_imbalance,
)
"""In the order of their sections."""


def _stalls(facts: Facts) -> dict[str, float]:
    """Reason -> share of a warp's time between two instructions, 0..1."""
    before, after = STALL
    latency = facts.get(LATENCY, 0.0)
    if latency > 0:
        out = {name[len(before) : -len(after)]: value / latency for name, value in facts.items()
               if name.startswith(before) and name.endswith(after)}  # fmt: skip
        out.pop("selected", None)  # that warp is not stalled, it issues
        if out:
            return {reason.replace("_", " "): share for reason, share in out.items()}
    return {name.removeprefix(_NVPROF_STALL).replace("_", " "): value / 100 for name, value in facts.items()
            if name.startswith(_NVPROF_STALL)}  # fmt: skip


def _capped(percent: float, facts: Facts) -> float:
    """No more than what compute has left to give."""
    return min(percent, max(100 - facts[COMPUTE], 0.0)) if COMPUTE in facts else percent
