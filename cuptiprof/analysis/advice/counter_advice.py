"""Nsight Compute's rules on the counters of each kernel, as time that following them can save."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cuptiprof.analysis.advice.evidence import Evidence
from cuptiprof.analysis.advice.heaviest_place import of_work
from cuptiprof.analysis.advice.suggestion import Suggestion
from cuptiprof.analysis.counter_values.kernel_counters import Float64
from cuptiprof.analysis.counter_values.launch_sizes import is_nvidia
from cuptiprof.analysis.kernel_rules import rules
from cuptiprof.analysis.kernel_rules.launch_facts import kernel_of_range, launch_facts
from cuptiprof.analysis.kernel_rules.rule_message import Facts
from cuptiprof.analysis.thresholds import WORTH
from cuptiprof.data.codes import distinct_rows, renumbered
from cuptiprof.data.tables import Array
from cuptiprof.text.short_names import shorten

_PART_OF_WORTH = 0.1
"""A launch shape is looked at if its time is this part of what advice must save: several of one kernel add up."""

_NAME = 60  # characters of a kernel's name in a sentence

_TRY = {
    "SOLBottleneck": ("What bounds the kernel", "Bound by latency: more warps, more independent work in each, fewer barriers. By memory: fuse with its "
                      "neighbours, smaller types, reuse in shared memory. By compute: cheaper instructions, tensor cores."),
    "SOLFPRoofline": ("FP64 where FP32 may do", "Use float32 where it is exact enough; mind constants that are double (2.0 for 2.0f)."),
    "IssueSlotUtilization": ("Few instructions issued", "More warps an SM (see occupancy), more independent instructions in each thread."),
    "CPIStall": ("Warps are stalled", "long scoreboard: fewer or earlier loads from memory, better hit rates; barrier: smaller blocks, less work between barriers; "
                 "short scoreboard: less of shared memory and special functions; math pipe throttle: other instructions; wait: more warps."),
    "ThreadDivergence": ("Warps diverge", "Let the threads of a warp branch alike: sort the work, make conditions depend on the warp."),
    "HighPipeUtilization": ("Pipes are little used", "More work in flight: larger grids, more warps, more independent instructions."),
    "SlowPipeLimiter": ("A slow pipe", "Move work to other pipes: from FP64 to FP32 or integers, special functions to fast approximations."),
    "MemoryApertureUsage": ("Data lie in another memory", "Copy what is read often to the GPU's memory before the kernel (pinned or managed memory: prefetch it), "
                            "or keep it in L2 (persisting access policy)."),
    "MemoryL2Compression": ("L2 compresses in vain", "Compressible memory only for what is mostly zeros or alike; write whole lines."),
    "FPInstructions": ("Unfused arithmetic", "Let the compiler fuse (-fmad=true, fmaf())."),
    "SharedMemoryConflicts": ("Conflicts of banks", "Pad rows of shared memory by one element, or swizzle."),
    "MemoryCacheAccessPattern": ("Uncoalesced access", "Neighbouring threads at neighbouring addresses: structure of arrays, transposing in shared memory, vector loads."),
    "LocalMemoryUsage": ("Local memory", "Fewer live registers, or more of them (__launch_bounds__); constant indices into arrays."),
    "AchievedOccupancy": ("Occupancy not achieved", "Even work of blocks; grids of many waves, or of exactly whole ones."),
    "WorkloadImbalance": ("SMs unevenly loaded", "More and smaller blocks, or work that blocks fetch themselves (persistent kernels, split-K)."),
}  # fmt: skip
"""Rule -> title, what to try. Those on the launch alone are not here: ``kernel_advice`` has them, with and without counters."""


def counted_kernels(evidence: Evidence) -> Iterator[Suggestion]:
    """A finding a rule and kernel, of means over the launches of a kernel and shape that were counted; times are those of all
    launches of that shape. What a rule estimates as speed-up (percent of the kernel's time) is what it can save; where a rule
    estimates none, up to the peak of what the kernel uses most."""
    result, kernels = evidence.result, evidence.result.kernels
    if not len(result.metric_ranges):
        return
    kernel = kernel_of_range(result)
    ranges = np.flatnonzero(kernel >= 0)
    shapes, shape = distinct_rows(kernels.codes("name"), kernels["config"])
    time = np.bincount(shape, evidence.kernel_ns, len(shapes))
    used, which = renumbered(shape[kernel[ranges]])
    columns = {**{name: result.counters[name] for name in result.counters}, **launch_facts(result).facts}
    means = {name: _means(values[ranges], which, len(used)) for name, values in columns.items()}
    found: dict[tuple[str, int], list[tuple[int, float, str]]] = {}
    for i in np.flatnonzero(time[used] >= _PART_OF_WORTH * WORTH.value / 100 * evidence.whole).tolist():
        facts = {name: float(values[i]) for name, values in means.items() if not np.isnan(values[i])}
        number = int(used[i])
        name = int(evidence.names.ids[kernel[ranges[np.flatnonzero(which == i)[0]]]])
        for message in rules.evaluate(facts):
            if message.severity != "OPT" or message.rule not in _TRY:
                continue
            percent = message.speedup if not np.isnan(message.speedup) else _headroom(facts)
            found.setdefault((message.rule, name), []).append((number, percent * time[number] / 100, message.text))
    for (rule, name), parts in found.items():
        rows = np.flatnonzero(np.isin(shape, [number for number, _, _ in parts]))
        lasted = evidence.kernel_ns[rows]
        about = evidence.bounded(int(lasted.sum()))
        best: dict[int, float] = {}
        for number, gain, _ in parts:  # of several messages of a rule (stalls) the one that saves most
            best[number] = max(best.get(number, 0.0), gain)
        saves = min(evidence.bounded(sum(best.values())), about)
        if evidence.exceeds(saves, WORTH):
            title, advice = _TRY[rule]
            text = max(parts, key=lambda part: part[1])[2]
            yield Suggestion(
                rule,
                title,
                of_work(result, [(kernels, rows, lasted)], evidence.names.names[name]),
                about,
                saves,
                text,
                advice,
            )


def would_tell_more(evidence: Evidence) -> str:
    """The line that says which counters would tell more; "" where they were read, nothing computes, or there are no
    such."""
    counters, devices = evidence.result.counters, evidence.result.devices
    others_gpu = len(devices) > 0 and not any(is_nvidia(devices))
    if not evidence.compute or others_gpu or (rules.COMPUTE in counters and rules.MEMORY in counters):
        return ""
    name = evidence.names.names[int(np.argmax(evidence.time_by_name))]
    longest = shorten([name], _NAME)[name]
    return (
        f"What bounds the kernels (compute, memory, latency) was not counted: cuptiprof run --analysis-metrics ... reads it, of the longest "
        f"({longest}) with -k NAME."
    )


def _headroom(facts: Facts) -> float:
    """Percent: to the peak of what the kernel uses most."""
    return max(100.0 - max(facts.get(rules.COMPUTE, 0.0), facts.get(rules.MEMORY, 0.0)), 0.0)


def _means(values: Float64, group: Array, groups: int) -> Float64:
    known = np.isfinite(values)
    count = np.bincount(group[known], minlength=groups)
    total = np.bincount(group[known], values[known], groups)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
