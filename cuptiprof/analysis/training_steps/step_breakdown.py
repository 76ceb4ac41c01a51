"""What the time of each training step went to: kernels, copies, communication, the host."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64, Intervals
from cuptiprof.analysis.arrays.intervals import time_within, union_of, union_of_all
from cuptiprof.analysis.training_steps.step_spans import StepSpans, gpu_steps
from cuptiprof.analysis.work.communication import communicating
from cuptiprof.data.codes import renumbered
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table

ROLES = ("kernel", "memcpy", "memset", "communication", "runtime", "dataloader", "cpu_exec")
"""What has a moment to itself when several go on: the first of these. What none has is "other"."""

_COLLECTIVE = re.compile(r"(nccl|gloo):(broadcast|reduce|all_reduce|all_gather|reduce_scatter)")
_DATALOADER = re.compile(r"enumerate\(DataLoader\)#.*\.__next__|enumerate\(DataPipe\)#.*", re.DOTALL)
_STEP = re.compile(r"ProfilerStep\s*#\s*\d+")


@dataclass(frozen=True)
class StepBreakdown:
    """One entry a step, ns, int64.

    Attributes:
        steps: their names and spans.
        roles: role -> time that it has to itself; with "other" they add up to the spans.
        communication: all of the time of communication; overlap: the part of it in which kernels ran that do not communicate.
    """

    steps: StepSpans
    roles: dict[str, Int64]
    communication: Int64
    overlap: Int64

    @property
    def total(self) -> Int64:
        return self.steps.end - self.steps.start


def step_breakdown(result: Result) -> StepBreakdown:
    """The step time breakdown of TensorBoard's plugin for torch.profiler, steps as ``gpu_steps`` has them.

    A moment belongs to the first of ``ROLES`` that is going on: kernels that do not communicate, copies, sets, communication (kernels and the
    host's time in ``nccl:``/``gloo:`` operators), CUDA calls, the data loader, operators and regions.

    The plugin knows a kernel that communicates by the operator that launched it; here its name is enough. It counts calls of
    the runtime, here those of the driver count as well.
    """
    steps = gpu_steps(result)
    work = _roles(result)
    spans = steps.start, steps.end
    so_far: list[Intervals] = []
    before, roles = np.zeros(len(steps), np.int64), {}
    for role in ROLES:
        so_far = [union_of_all([*so_far, work[role]])]
        covered = time_within(so_far[0], *spans)
        roles[role] = covered - before
        before = covered
    roles["other"] = steps.end - steps.start - before
    communication = time_within(work["communication"], *spans)
    either = time_within(union_of_all([work["kernel"], work["communication"]]), *spans)
    return StepBreakdown(steps, roles, communication, time_within(work["kernel"], *spans) + communication - either)


def _roles(result: Result) -> dict[str, Intervals]:
    kernels, operators, regions = result.kernels, result.operators, result.regions
    talk = communicating(kernels) | _launched_by_collectives(result)
    host: dict[str, list[Intervals]] = {"communication": [], "dataloader": [], "cpu_exec": []}
    for table in (operators, regions):
        collective = _named(table, _COLLECTIVE.fullmatch)
        loading = _named(table, _DATALOADER.fullmatch)
        step = _named(table, _STEP.fullmatch)
        host["communication"].append(_union(table, collective))
        host["dataloader"].append(_union(table, loading))
        host["cpu_exec"].append(_union(table, ~(collective | loading | step)))
    return {
        "kernel": _union(kernels, ~talk),
        "memcpy": _union(result.memcpys),
        "memset": _union(result.memsets),
        "communication": union_of_all([_union(kernels, talk), *host["communication"]]),
        "runtime": _union(result.api_calls),
        "dataloader": union_of_all(host["dataloader"]),
        "cpu_exec": union_of_all(host["cpu_exec"]),
    }


def data_loading(result: Result) -> Intervals:
    """When the host loaded data: operators and regions ``enumerate(DataLoader)#...__next__``, ``enumerate(DataPipe)#...``."""
    return union_of_all([_union(of, _named(of, _DATALOADER.fullmatch)) for of in (result.operators, result.regions)])


def _launched_by_collectives(result: Result) -> Array:
    """Mask of the kernels whose innermost operator is a collective."""
    kernels, operators = result.kernels, result.operators
    instances = operators["instance"][_named(operators, _COLLECTIVE.fullmatch)]
    if not len(instances):
        return np.zeros(len(kernels), bool)
    mask: Array = np.isin(kernels["operator_instance"], instances)
    return mask


def _named(table: Table, wanted: Callable[[str], object]) -> Array:
    used, which = renumbered(table.codes("name"))
    mask = np.array([bool(wanted(table.strings[code])) for code in used.tolist()], bool)
    return mask[which] if len(used) else np.zeros(0, bool)


def _union(table: Table, mask: Array | None = None) -> Intervals:
    start, end = table["start"], table["end"]
    return union_of(start, end) if mask is None or mask.all() else union_of(start[mask], end[mask])
