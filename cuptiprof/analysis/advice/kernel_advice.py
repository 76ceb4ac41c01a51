"""Kernels whose launch leaves a part of the GPU empty: few blocks, odd blocks, a tail, little occupancy, no tensor cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from cuptiprof.analysis.advice.evidence import Evidence
from cuptiprof.analysis.advice.heaviest_place import in_sentence, last_name, of_work, operator_codes
from cuptiprof.analysis.advice.suggestion import Candidate, Place, Suggestion
from cuptiprof.analysis.arrays.aggregate import Int64, sum_by_group
from cuptiprof.analysis.counter_values.kernel_counters import Float64
from cuptiprof.analysis.counter_values.launch_sizes import is_nvidia, launch_sizes, of_kernels
from cuptiprof.analysis.thresholds import OCCUPANCY_GAIN, TAIL, TENSOR_CC, TENSOR_SHARE, WARP, WORTH
from cuptiprof.analysis.work.tensor_cores import is_eligible
from cuptiprof.data.chips import flops_per_clock
from cuptiprof.data.codes import renumbered
from cuptiprof.text.units import format_time

_AT_ONCE = 1 << 17  # kernels that sums are made of at a time
_SINGLE_PRECISION = ("sgemm", "scudnn", "cgemm")
"""pieces of names of matrix products and convolutions in FP32, not on tensor cores"""


def launch_shapes(evidence: Evidence) -> Iterator[Candidate]:
    """Kernels with fewer blocks than SMs, else with blocks that are no whole warps, else with little occupancy; and those with a tail."""
    sizes = launch_sizes(evidence.result)
    if not evidence.compute or not sizes:
        return
    free, lanes, tails, missing = {}, {}, {}, {}
    for device, size in sizes.items():  # of each row of launch_configs the part of a kernel's time that could be saved
        threads, achieved = np.maximum(size.threads, 1), np.nan_to_num(size.achieved(), nan=100.0)
        few = np.maximum(1 - size.blocks_per_sm, 0.0)
        odd = 1 - threads / (np.ceil(threads / WARP.value) * WARP.value)
        low = np.maximum(1 - achieved / OCCUPANCY_GAIN.value, 0.0)
        free[device] = few
        lanes[device] = np.where((few > 0) | (size.chip is None), 0.0, odd)
        tails[device] = _tail(size.waves)
        missing[device] = np.where((few > 0) | (odd > 0), 0.0, low)
    yield from _by_name(evidence, free, "few_blocks", "Fewer blocks than SMs",
        lambda gain: f"Its grids have {1 - gain:.2f} blocks for each SM: so many of the SMs have nothing to do unless something else runs beside "
        "it.",
        "A larger batch or problem, smaller blocks or a split of the longest loop (split-K); else run it beside other kernels in "
        "streams of their own.")  # fmt: skip
    yield from _by_name(evidence, lanes, "partial_warps", "Blocks of no whole warps",
        lambda gain: f"Its blocks are no multiple of {WARP.value} threads: {100 * gain:.0f} % of its lanes have nothing to do.",
        f"Round the block up to a multiple of {WARP.value} threads.")  # fmt: skip
    yield from _by_name(evidence, tails, "tail", "Last wave mostly empty",
        lambda gain: f"Its grids are a few whole waves of blocks and a part of one: while the last wave runs, SMs are empty for {100 * gain:.0f} % of the "
        "time, if blocks take equally long.",
        "A grid of whole waves (another batch size, block or tile), smaller blocks, or persistent blocks that fetch their work (stream-K); "
        "--view waves has the numbers.")  # fmt: skip
    # Kernels on tensor cores are made to run with few warps.
    yield from _by_name(evidence, missing, "low_occupancy", "Low occupancy",
        lambda gain: f"Its launches allow {OCCUPANCY_GAIN.value * (1 - gain):.0f} % of the warps that the SMs can hold; up to "
        f"{OCCUPANCY_GAIN.value:.0f} % more of them may be expected to help.",
        "Fewer registers (__launch_bounds__, maxrregcount) or less shared memory a block, more threads a block. Whether it waits "
        "for memory at all, counters say.", without_tensor=True)  # fmt: skip


def _tail(waves: Float64) -> Float64:
    """Part of the time that SMs are empty in the last wave, where ncu speaks of a tail: f >= 1 full waves and a partial one, which takes
    1 / (1 + f) of the time, if that is 20 % or more."""
    full = np.floor(np.nan_to_num(waves))
    empty = np.ceil(np.nan_to_num(waves)) - np.nan_to_num(waves)
    return np.where((full >= 1) & (empty > 0) & (TAIL.value * (1 + full) <= 100), empty / (1 + full), 0.0)


def tensor_cores(evidence: Evidence) -> Iterator[Suggestion]:
    """Operators that tensor cores could do, and kernels that are such by their names, most of whose time is not on them."""
    result, kernels = evidence.result, evidence.result.kernels
    names = np.array([any(piece in name for piece in _SINGLE_PRECISION) for name in evidence.names.names], bool)
    if not names.any() and not kernels.codes("operator").any() and not kernels.codes("operator_instance").any():
        return
    gain = _tensor_gain(evidence)
    if not gain.any():
        return
    by_name = names[evidence.names.ids]
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
    columns = ("device", "compute_capability_major", "compute_capability_minor")
    for device, major, minor, nvidia in zip(*(devices[c].tolist() for c in columns), is_nvidia(devices), strict=True):
        if not nvidia or major < TENSOR_CC.value:
            continue
        of = rates.get((major, minor), {})
        gain = 1 - of["float32"] / of["half"] if of.get("half") else 1.0
        out[evidence.result.kernels["device"] == device] = max(gain, 0.0)
    return out


def _by_name(
    evidence: Evidence,
    gains: dict[int, Float64],
    rule: str,
    title: str,
    text: Callable[[float], str],
    advice: str,
    without_tensor: bool = False,
) -> Iterator[Candidate]:
    """A finding a kernel name. ``gains``: by device, for each row of ``launch_configs`` the part of the time (0..1) that launches could be
    quicker; ``text`` of their mean over those that could."""
    if not any(gain.any() for gain in gains.values()):
        return
    names, groups = evidence.names, len(evidence.names.names)
    gain = of_kernels(evidence.result, gains)
    about, saved = np.zeros(groups), np.zeros(groups)
    for at in range(0, len(gain), _AT_ONCE):
        rows = slice(at, at + _AT_ONCE)
        part = np.nan_to_num(gain[rows])
        if without_tensor:
            part[evidence.on_tensor_cores[rows]] = 0.0
        lasted = np.where(part > 0, evidence.kernel_ns[rows], 0)
        about += np.bincount(names.ids[rows], lasted, groups)
        saved += np.bincount(names.ids[rows], part * lasted, groups)
    for number in np.flatnonzero(saved >= evidence.worked * WORTH.value / 100).tolist():
        of = evidence.bounded(about[number])
        saves = min(evidence.bounded(saved[number]), of)
        if saves and evidence.exceeds(saves, WORTH):

            def made(number: int = number, of: int = of, saves: int = saves) -> Suggestion:
                could = (gain > 0) & (names.ids == number)
                place = _place(evidence, np.flatnonzero(could & ~evidence.on_tensor_cores if without_tensor else could))
                return Suggestion(rule, title, place, of, saves, text(saved[number] / about[number]), advice)

            yield Candidate(rule, of, saves, made)


def _place(evidence: Evidence, rows: Int64) -> Place:
    """Where most of these launches were made, and the kernel that took most of their time."""
    kernels, time = evidence.result.kernels, evidence.kernel_ns[rows]
    names = evidence.names
    sums = sum_by_group(names.ids[rows], time, len(names.names))
    return of_work(evidence.result, [(kernels, rows, time)], names.names[int(np.argmax(sums))] if len(rows) else "")
