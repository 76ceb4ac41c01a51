"""What the counters of one kernel say about it: Nsight Compute's core rules, with its thresholds.

Facts are metrics by their perfworks name (or nvprof's, see ``with_synonyms``) and what is known of the launch, by the names
below. A rule whose facts are missing says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

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

# The same quantity under another name: (name, other name, factor to get from the other to the first).
_SYNONYMS = (
    (OCCUPANCY, "achieved_occupancy", 100.0),
    (ISSUE_ACTIVE, "smsp__issue_active.avg.pct_of_peak_sustained_active", 0.01),
    (ISSUE_ACTIVE, "issue_slot_utilization", 0.01),
    (WARPS_ELIGIBLE, "eligible_warps_per_cycle", 0.25),
)
_NVPROF_STALL = "stall_"

Facts = Mapping[str, float]


@dataclass(frozen=True)
class Message:
    """One finding. ``speedup`` is the estimated local speed-up in percent, NaN where none is estimated."""

    rule: str
    section: str
    severity: str  # "OPT": something to gain, "INF": to know, "WRN": to beware
    text: str
    speedup: float = float("nan")


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
    say = _messages("SOLBottleneck", "SpeedOfLight")
    if compute >= 80 or memory >= 80:
        yield say("INF", f"{larger} reaches {max(compute, memory):.1f} % of its peak: the kernel uses {busy} well. "
                         f"To go faster, move work from {larger} to other units or do less of it.")  # fmt: skip
    elif compute < 60 and memory < 60:
        if facts.get(WAVES, 1.0) < 1:
            yield say("OPT", f"The grid is too small to fill the GPU: {facts[WAVES]:.1f} waves on all SMs.")
        else:
            yield say("OPT", "Bound by instruction and memory latency: compute and memory are both below 60 % of peak "
                             f"({compute:.1f} % and {memory:.1f} %). See SchedulerStats and WarpStateStats.")  # fmt: skip
    elif abs(compute - memory) >= 10:
        yield say("OPT", f"{larger} is used more than the rest ({compute:.1f} % compute, {memory:.1f} % memory): "
                         f"look at {busy} first.")  # fmt: skip
    else:
        yield say(
            "INF",
            f"compute and memory are in balance ({compute:.1f} % and {memory:.1f} %): to go faster, both must do less.",
        )


def issue_slot_utilization(facts: Facts) -> Iterator[Message]:
    if ISSUE_ACTIVE not in facts or facts[ISSUE_ACTIVE] >= 0.6:
        return
    issued = facts[ISSUE_ACTIVE]
    text = f"A scheduler issues an instruction in {100 * issued:.1f} % of its cycles"
    active = facts.get(WARPS_ACTIVE)
    if active is not None and active < 1:
        text += (
            f"; it has less than one active warp ({active:.2f}): launch more, or spread the work evenly over the SMs."
        )
    elif active is not None and MAX_WARPS in facts and facts[MAX_WARPS] > 0 and active / facts[MAX_WARPS] < 0.8:
        text += f"; of {facts[MAX_WARPS]:.1f} warps that the launch allows, {active:.2f} are active: see the achieved occupancy."
    else:
        eligible = f" (eligible: {facts[WARPS_ELIGIBLE]:.2f} warps a cycle)" if WARPS_ELIGIBLE in facts else ""
        text += f"{eligible}: its warps wait most of the time. WarpStateStats says for what."
    yield _messages("IssueSlotUtilization", "SchedulerStats")("OPT", text, _capped(100 * (1 - issued), facts))


def cpi_stall(facts: Facts) -> Iterator[Message]:
    if ISSUE_ACTIVE not in facts or facts[ISSUE_ACTIVE] >= 0.8:
        return
    for reason, share in sorted(_stalls(facts).items(), key=lambda item: -item[1]):
        if share > 0.3:
            text = f"A warp spends {100 * share:.1f} % of the time between two instructions stalled on {reason}."
            yield _messages("CPIStall", "WarpStateStats")("OPT", text, _capped(100 * share, facts))


def launch_configuration(facts: Facts) -> Iterator[Message]:
    say = _messages("LaunchConfiguration", "LaunchStats")
    block, grid, sms = facts.get(BLOCK, 0), facts.get(GRID, 0), facts.get(SMS, 0)
    if block % 32:
        whole = -(-block // 32) * 32
        yield say("OPT", f"{block:.0f} threads a block are no multiple of the warp size 32: {whole - block:.0f} lanes of the "
                         "last warp idle.", 100 * (1 - block / whole))  # fmt: skip
    if grid and sms and grid < sms:
        yield say("OPT", f"{grid:.0f} blocks are fewer than the {sms:.0f} SMs: {sms - grid:.0f} SMs idle.",
                  100 * (sms - grid) / sms)  # fmt: skip
    elif grid and sms and grid < 2 * sms:
        yield say("INF", f"{grid:.0f} blocks are less than two for each of the {sms:.0f} SMs: an SM has nothing to do while "
                         "its block waits at a barrier.")  # fmt: skip
    waves = facts.get(WAVES, 0.0)
    whole = waves // 1
    if whole >= 1 and waves > whole and 1 / (1 + whole) >= 0.2:
        yield say("OPT", f"Tail effect: {whole:.0f} full waves and a partial one ({waves:.2f} in all); the last wave can cost up to "
                         f"{100 / (1 + whole):.1f} % of the time.", 100 / (1 + whole))  # fmt: skip


def theoretical_occupancy(facts: Facts) -> Iterator[Message]:
    theoretical = facts.get(THEORETICAL)
    if theoretical is None or theoretical >= 80:
        return
    say = _messages("TheoreticalOccupancy", "Occupancy")
    yield say("OPT", f"The launch allows {theoretical:.1f} % of the warps that an SM could hold (see the block limits).",
              100 - theoretical)  # fmt: skip


def achieved_occupancy(facts: Facts) -> Iterator[Message]:
    theoretical, achieved = facts.get(THEORETICAL), facts.get(OCCUPANCY)
    if theoretical is None or achieved is None or theoretical <= 0 or theoretical - achieved <= 10:
        return
    say = _messages("AchievedOccupancy", "Occupancy")
    yield say("OPT", f"Achieved occupancy is {achieved:.1f} %, the launch allows {theoretical:.1f} %: warps of a block or blocks of "
                     "the grid differ in length, or the kernel is too short to fill the SMs.",
              100 * (1 - achieved / theoretical))  # fmt: skip


RULES: tuple[Callable[[Facts], Iterator[Message]], ...] = (
    sol_bottleneck,
    issue_slot_utilization,
    cpi_stall,
    launch_configuration,
    theoretical_occupancy,
    achieved_occupancy,
)
"""In the order of their sections."""


def _messages(rule: str, section: str) -> Callable[..., Message]:
    def say(severity: str, text: str, speedup: float = float("nan")) -> Message:
        return Message(rule, section, severity, text[:1].upper() + text[1:], speedup)

    return say


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
