"""Communication that nothing hides, steps that stand out, memory that is nearly full, records that were lost."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from cuptiprof.analysis.advice.evidence import Evidence
from cuptiprof.analysis.advice.heaviest_place import in_sentence, of_work
from cuptiprof.analysis.advice.suggestion import Place, Suggestion
from cuptiprof.analysis.allocators.allocations import allocations
from cuptiprof.analysis.allocators.allocator_memory import OOM, devices, memory_timeline
from cuptiprof.analysis.thresholds import (
    COMMUNICATION,
    FRAGMENTED,
    MEMORY_FULL,
    OUTLIER_STEPS,
    WORTH,
)
from cuptiprof.analysis.training_steps.step_breakdown import step_breakdown
from cuptiprof.analysis.training_steps.step_outliers import step_outliers
from cuptiprof.analysis.training_steps.step_spans import gpu_steps, host_steps
from cuptiprof.analysis.utilization.timeline import hidden
from cuptiprof.analysis.work.gpu_work import kernel_names
from cuptiprof.data.codes import distinct
from cuptiprof.data.result import Losses
from cuptiprof.data.tables import Table
from cuptiprof.text.units import format_bytes, format_time

_ROLES = {"kernel": "kernels", "memcpy": "copies", "memset": "sets", "communication": "communication", "runtime": "CUDA calls",
          "dataloader": "loading data", "cpu_exec": "operators on the host", "other": "code outside of operators and regions"}  # fmt: skip


def communication(evidence: Evidence) -> Iterator[Suggestion]:
    """Time of communication in which nothing is computed."""
    kernels, rows = evidence.result.kernels, np.flatnonzero(evidence.talk)
    every = [work["communication"] for work in evidence.work.values()]
    time = sum(int((one.end - one.start).sum()) for one in every)
    exposed = time - sum(hidden(work) for work in evidence.work.values())
    if not evidence.exceeds(exposed, COMMUNICATION):
        return
    lasted = np.maximum(kernels["end"][rows] - kernels["start"][rows], 0)
    names = kernel_names(kernels, evidence.demangle, rows)
    longest = names.names[int(np.argmax(np.bincount(names.ids, lasted)))]
    yield Suggestion("communication", "Communication not hidden", of_work(evidence.result, [(kernels, rows, lasted)], longest), time, exposed,
        f"Communication took {format_time(time)} ({len(rows):,} kernels), and nothing was computed during {format_time(exposed)} of it. "
        "Waiting for the slowest rank is in that: compare the ranks.",
        "Overlap it with computation (DDP buckets: bucket_cap_mb, static_graph; FSDP prefetch; async_op=True), send less (FP16 "
        "or BF16, gradient accumulation), a larger batch a GPU.")  # fmt: skip


def steps_that_stand_out(evidence: Evidence) -> Iterator[Suggestion]:
    """Steps that took much longer than the others."""
    steps = gpu_steps(evidence.result) if len(host_steps(evidence.result)) >= OUTLIER_STEPS.value else None
    if steps is None or not len(step_outliers(steps.end - steps.start)[0]):
        return
    found = step_breakdown(evidence.result)
    took = found.total
    out, median = step_outliers(took)
    saves = int((took[out] - median).sum())
    if not evidence.exceeds(min(saves, evidence.whole), WORTH):
        return
    grown = {role: float((times[out] - np.median(times)).sum()) for role, times in found.roles.items()}
    role = max(grown, key=lambda name: grown[name])
    first = bool((out == np.arange(len(out))).all())
    some = ", ".join(found.steps.name[i] for i in out[:4].tolist()) + (", ..." if len(out) > 4 else "")
    yield Suggestion("long_steps", "Steps that stand out", Place(step=in_sentence(some)), min(int(took[out].sum()), evidence.whole), min(saves, evidence.whole),
        f"{len(out):,} of {len(took):,} steps took {format_time(float(np.mean(took[out])))} on average, the median step {format_time(median)}; most "
        f"of the difference is {_ROLES[role]}.",
        "The first steps warm up: leave them out (schedule(wait=..., warmup=...))." if first else
        "See what else happened then: checkpoints, evaluation, logging, garbage collection, a full disk, other programs.")  # fmt: skip


def memory(evidence: Evidence) -> Iterator[Suggestion]:
    """Memory of a GPU that is nearly full, and what of it the allocator holds for nobody."""
    result = evidence.result
    sizes = dict(zip(*(result.devices[c].tolist() for c in ("device", "global_memory_size")), strict=True))
    peaks = {device: size for device, _, of in allocations(result.memory).pools() if (size := of.peak()[1])}
    for device in devices(result):
        timeline = memory_timeline(result, device)
        reserved = int(max(timeline.before[1], timeline.reserved.max(initial=0)))
        peaks[device] = max(peaks.get(device, 0), reserved)
        events = result.allocator_events
        refused = int(np.count_nonzero((events["action"] == OOM) & (events["device"] == device)))
        free = reserved - int(timeline.allocated[int(np.argmax(timeline.reserved))]) if len(timeline.reserved) else 0
        full = sizes.get(device, 0) and 100 * reserved > MEMORY_FULL.value * sizes[device]
        if (refused or full) and 100 * free > FRAGMENTED.value * reserved:
            yield Suggestion("fragmentation", "Memory is fragmented", Place(), 0, 0,
                f"Of {format_bytes(reserved)} that PyTorch's allocator had reserved on GPU {device}, {format_bytes(free)} were in no tensor"
                f"{f', and {refused:,} allocations failed' if refused else ''}.",
                "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; sizes that change less from step to step.")  # fmt: skip
    for device, peak in sorted(peaks.items()):
        if sizes.get(device, 0) and 100 * peak > MEMORY_FULL.value * sizes[device]:
            yield Suggestion("memory_full", "Memory nearly full", Place(), 0, 0,
                f"At the peak {format_bytes(peak)} of {format_bytes(sizes[device])} of GPU {device} were in use: allocations that do not fit "
                "make the allocator wait and give memory back.",
                "Activation checkpointing, a smaller batch with gradient accumulation, FP16 or BF16, sharded optimizer state.")  # fmt: skip


def ways_of_parallel_training(evidence: Evidence) -> Iterator[Suggestion]:
    """DataParallel, and collectives of gloo where there are GPUs: those of the plugin's recommendations that are not of a time."""
    result = evidence.result
    if not evidence.gpus:
        return
    if any(_names(table, _DATA_PARALLEL) for table in (result.operators, result.regions)):
        yield Suggestion("data_parallel", "DataParallel", Place(), 0, 0,
            "torch.nn.DataParallel was used: one process for all GPUs, which copies the model to each of them in every step.",
            "DistributedDataParallel, a process a GPU.")  # fmt: skip
    if _names(result.collectives, "gloo", "backend") or any(
        _names(table, _GLOO) for table in (result.operators, result.regions)
    ):
        yield Suggestion("gloo", "Collectives by gloo", Place(), 0, 0,
            "Collectives ran by gloo, through the memory of the host, though the program uses GPUs.",
            "torch.distributed.init_process_group(\"nccl\") for tensors on GPUs.")  # fmt: skip


def _names(table: Table, wanted: str | re.Pattern[str], column: str = "name") -> bool:
    """Whether any row has that name."""
    texts = (str(table.strings[code]) for code in distinct(table.codes(column)).tolist())
    return any(text == wanted if isinstance(wanted, str) else wanted.match(text) is not None for text in texts)


_DATA_PARALLEL = "DataParallel.forward"
_GLOO = re.compile("gloo:")


def losses(evidence: Evidence) -> Iterator[Suggestion]:
    """What was lost, so that numbers are too small."""
    lost = {name: count for name, count in evidence.result.losses.items() if count and name not in Losses.NOT_A_LOSS}
    if lost:
        worst = max(lost, key=lambda name: lost[name])
        imported = str(evidence.result.metadata.get("device", "")).startswith("import:")
        yield Suggestion("losses", "Numbers are incomplete", Place(), 0, 0,
            f"{lost[worst]:,} {worst} ({Losses.DOCS[worst]}){f' and {len(lost) - 1} more kinds of losses' if len(lost) > 1 else ''}: what is said here may be "
            "wrong.",
            "Record a trace from before the first launch to after the last work." if imported else
            "A larger budget, keep=\"spill\", fewer activities, a shorter recording; \"Losses\" in the documentation says which loss asks for what.")  # fmt: skip
