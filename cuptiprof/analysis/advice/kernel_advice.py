"""Kernels whose launch leaves a part of the GPU empty: few blocks, odd blocks, little occupancy, no tensor cores."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cuptiprof.analysis.advice.evidence import Evidence
from cuptiprof.analysis.advice.heaviest_place import in_sentence, last_name, of_work, operator_codes
from cuptiprof.analysis.advice.suggestion import Place, Suggestion
from cuptiprof.analysis.aggregate import Int64, sum_by_group
from cuptiprof.analysis.kernel_counters import Float64
from cuptiprof.analysis.launch_sizes import blocks_per_sm, estimated_occupancy
from cuptiprof.analysis.tensor_cores import is_eligible
from cuptiprof.analysis.thresholds import OCCUPANCY_GAIN, TENSOR_CC, TENSOR_SHARE, WARP, WORTH
from cuptiprof.data.chips import flops_per_clock
from cuptiprof.data.codes import renumbered
from cuptiprof.data.tables import Array
from cuptiprof.text.units import format_time

_SINGLE_PRECISION = ("sgemm", "scudnn", "cgemm")
"""pieces of names of matrix products and convolutions in FP32, not on tensor cores"""


def launch_shapes(evidence: Evidence) -> Iterator[Suggestion]:
    """Kernels with fewer blocks than SMs, with blocks that are no whole warps, with little occupancy. A launch is in the first of them."""
    if not evidence.compute or not len(evidence.result.devices):
        return
    blocks, occupancy = blocks_per_sm(evidence.result), estimated_occupancy(evidence.result)
    free = np.nan_to_num(1 - blocks, nan=0.0)
    few = free > 0
    yield from _by_name(evidence, np.where(few, free, 0.0), few, "few_blocks", "Fewer blocks than SMs",
        lambda rows, weight: f"Its grids have {_mean(blocks, rows, weight):.2f} blocks for each SM: so many of the SMs have nothing to do unless "
        "something else runs beside it.",
        "A larger batch or problem, smaller blocks or a split of the longest loop (split-K); else run it beside other kernels in "
        "streams of their own.")  # fmt: skip
    partly, lost = _partial_warps(evidence)
    partly &= ~few
    yield from _by_name(evidence, np.where(partly, lost, 0.0), partly, "partial_warps", "Blocks of no whole warps",
        lambda rows, weight: f"Its blocks are no multiple of {WARP.value} threads: {100 * _mean(lost, rows, weight):.0f} % of its lanes have "
        "nothing to do.",
        f"Round the block up to a multiple of {WARP.value} threads.")  # fmt: skip
    # Kernels on tensor cores are made to run with few warps; and a product of matrices is no other.
    low = (occupancy < OCCUPANCY_GAIN.value) & ~few & ~partly & ~evidence.on_tensor_cores
    gain = np.where(low, 1 - np.nan_to_num(occupancy) / OCCUPANCY_GAIN.value, 0.0)
    yield from _by_name(evidence, gain, low, "low_occupancy", "Low occupancy",
        lambda rows, weight: f"Its launches allow {_mean(occupancy, rows, weight):.0f} % of the warps that the SMs can hold; up to "
        f"{OCCUPANCY_GAIN.value:.0f} % more of them may be expected to help.",
        "Fewer registers (__launch_bounds__, maxrregcount) or less shared memory a block, more threads a block. Whether it waits "
        "for memory at all, counters say.")  # fmt: skip


def tensor_cores(evidence: Evidence) -> Iterator[Suggestion]:
    """Operators that tensor cores could do, and kernels that are such by their names, most of whose time is not on them."""
    result, kernels = evidence.result, evidence.result.kernels
    gain = _tensor_gain(evidence)
    if not gain.any():
        return
    names = np.array([any(piece in name for piece in _SINGLE_PRECISION) for name in evidence.names.names], bool)
    by_name = names[evidence.names.ids] if len(names) else np.zeros(0, bool)
    codes = operator_codes(result, kernels)
    used, which = renumbered(codes)
    texts = [last_name(str(kernels.strings[code])) for code in used.tolist()]
    eligible = np.array([is_eligible(text) for text in texts], bool)
    of_operator = eligible[which]
    on = evidence.on_tensor_cores
    time = evidence.kernel_ns
    operators: dict[str, list[int]] = {}
    for i, text in enumerate(texts):
        if eligible[i]:
            operators.setdefault(text, []).append(i)
    for text, numbers in operators.items():
        mine = np.isin(which, numbers)
        whole = int(time[mine].sum())
        if whole and 100 * int(time[mine & on].sum()) < TENSOR_SHARE.value * whole:
            rows = np.flatnonzero(mine & ~on)
            yield from _not_used(evidence, rows, gain, f"{in_sentence(text)} took {format_time(whole)}",
                                 of_work(result, [(kernels, rows, time[rows])]))  # fmt: skip
    rows = np.flatnonzero(by_name & ~of_operator & ~on)
    yield from _not_used(evidence, rows, gain, "Matrix products and convolutions in FP32, by their names, took "
                         f"{format_time(int(time[rows].sum()))}", _place(evidence, rows))  # fmt: skip


def _not_used(evidence: Evidence, rows: Int64, gain: Float64, what: str, place: Place) -> Iterator[Suggestion]:
    time = evidence.kernel_ns[rows]
    saves = evidence.bounded(float((time * gain[rows]).sum()))
    if evidence.exceeds(saves, WORTH):
        yield Suggestion("tensor_cores", "Tensor cores not used", place, evidence.bounded(int(time.sum())), saves,
            f"{what}, most of it in kernels that do not use tensor cores.",
            "torch.autocast (FP16 or BF16), from compute capability 8.0 on also torch.set_float32_matmul_precision(\"high\") (TF32); sizes "
            "that are multiples of 8 (FP16) or 4 (TF32).")  # fmt: skip


def _tensor_gain(evidence: Evidence) -> Float64:
    """Of each kernel the part of its time that tensor cores could save at most: 1 - FP32 rate / FP16 rate of its chip; 0: none there."""
    devices = evidence.result.devices
    out = np.zeros(len(evidence.result.kernels))
    rates = flops_per_clock()
    for device, major, minor in zip(
        *(devices[c].tolist() for c in ("device", "compute_capability_major", "compute_capability_minor")), strict=True
    ):
        if major < TENSOR_CC.value:
            continue
        of = rates.get((major, minor), {})
        gain = 1 - of["float32"] / of["half"] if of.get("half") else 1.0
        out[evidence.result.kernels["device"] == device] = max(gain, 0.0)
    return out


def _by_name(
    evidence: Evidence, gain: Float64, mask: Array, rule: str, title: str, text: object, advice: str
) -> Iterator[Suggestion]:
    """A finding a kernel name of which the launches of ``mask`` could be quicker by ``gain`` (0..1) of their time."""
    assert callable(text)
    if not mask.any():
        return
    time, names = evidence.kernel_ns, evidence.names
    saved = np.bincount(names.ids, time * gain, len(names.names))
    for number in np.flatnonzero(saved >= evidence.whole * WORTH.value / 100).tolist():
        rows = np.flatnonzero(mask & (names.ids == number))
        about = evidence.bounded(int(time[rows].sum()))
        saves = min(evidence.bounded(saved[number]), about)
        if evidence.exceeds(saves, WORTH):
            yield Suggestion(rule, title, _place(evidence, rows), about, saves, text(rows, time[rows]), advice)


def _place(evidence: Evidence, rows: Int64) -> Place:
    """Where most of these launches were made, and the kernel that took most of their time."""
    kernels, time = evidence.result.kernels, evidence.kernel_ns[rows]
    names = evidence.names
    sums = sum_by_group(names.ids[rows], time, len(names.names))
    return of_work(evidence.result, [(kernels, rows, time)], names.names[int(np.argmax(sums))] if len(rows) else "")


def _partial_warps(evidence: Evidence) -> tuple[Array, Float64]:
    """Of each kernel: whether its blocks are no whole warps; share of the lanes of its warps that have no thread."""
    configs = evidence.result.launch_configs
    config = evidence.result.kernels["config"]
    threads = (
        np.prod([configs[f"block_{axis}"].astype(np.float64) for axis in "xyz"], axis=0)
        if len(configs)
        else np.zeros(1)
    )
    threads = np.where(threads > 0, threads, WARP.value)
    lost = 1 - threads / (np.ceil(threads / WARP.value) * WARP.value)
    each = lost[np.minimum(config, len(lost) - 1)]
    return each > 0, each


def _mean(values: Float64, rows: Int64, weight: Int64) -> float:
    known = np.isfinite(values[rows]) & (weight > 0)
    return float(np.average(values[rows][known], weights=weight[known])) if known.any() else float("nan")
