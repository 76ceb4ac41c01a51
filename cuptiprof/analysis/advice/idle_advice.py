"""Idle GPUs: the host was late, waited, loaded data, allocated, or the program began and ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from cuptiprof.analysis.advice.evidence import Evidence
from cuptiprof.analysis.advice.heaviest_place import in_sentence, of_moments, of_work
from cuptiprof.analysis.advice.suggestion import Place, Suggestion
from cuptiprof.analysis.arrays.aggregate import Int64, Intervals, sum_by_group
from cuptiprof.analysis.arrays.intervals import length, time_within, union_of, union_of_all
from cuptiprof.analysis.thresholds import IDLE, OUTSIDE, SMALL_GAP, UTILISATION
from cuptiprof.analysis.training_steps.step_breakdown import data_loading
from cuptiprof.analysis.utilization.gpu_idle import GpuIdle, is_wait
from cuptiprof.data.codes import renumbered
from cuptiprof.data.tables import Array, Table
from cuptiprof.text.units import format_time

_ALLOCATES = ("Malloc", "cudaFree", "MemAlloc", "MemFree", "HostAlloc", "HostRegister", "HostUnregister", "MemCreate",
              "MemMap", "MemUnmap", "MemRelease", "MemAddressReserve")  # fmt: skip


def outside(evidence: Evidence) -> Iterator[Suggestion]:
    """Most of what was recorded is before the first and after the last work of the GPUs."""
    time = sum(gpu.first - evidence.first + evidence.last - gpu.last for gpu in evidence.idle)
    if evidence.share(time) >= OUTSIDE.value:
        yield Suggestion("outside", "Set-up and end recorded", Place(), time, time,
            f"{evidence.share(time):.0f} % of the recorded time is before the first and after the last work of the GPU: "
            "set-up, warm-up, the end.",
            "Record the steps alone (profile(schedule=...), or the block that matters): shares of the wall time then say more.")  # fmt: skip


def synchronisation(evidence: Evidence) -> Iterator[Suggestion]:
    """The host waited for the GPU before it launched on."""
    api = evidence.result.api_calls
    time = sum(int(gpu.synchronisation.sum()) for gpu in evidence.idle)
    if not evidence.exceeds(time, IDLE):
        return
    rows = np.concatenate([gpu.wait[gpu.wait >= 0] for gpu in evidence.idle])
    weight = np.concatenate([gpu.synchronisation[gpu.wait >= 0] for gpu in evidence.idle])
    place = of_moments(evidence.result, api["thread"][rows], api["start"][rows], weight)
    name, count = _heaviest(api, rows, weight)
    waits = len(np.unique(rows))
    yield Suggestion("synchronisation", "Host waits for the GPU", replace(place, call=name), time, time,
        f"The GPU ran dry {waits:,} times while the host waited for it"
        f"{f' (most in {in_sentence(name)}, {count:,} times)' if name else ''}, and then waited {format_time(time)} for what the host had not "
        "launched meanwhile.",
        "Remove what waits (.item(), .cpu(), print of a tensor, nonzero, boolean indexing, torch.cuda.synchronize), or do it "
        "once every so many steps; copy to pinned memory with non_blocking=True and read a step later.")  # fmt: skip


def late_host(evidence: Evidence) -> Iterator[Suggestion]:
    """Idle time of the host's making, in parts that do not overlap: loading data, allocating, other calls, launches, all else."""
    loading = data_loading(evidence.result)
    calls = _other_calls(evidence.result.api_calls)
    late = [_parts(gpu, loading, calls) for gpu in evidence.idle]
    yield from _data_loader(evidence, late, loading)
    yield from _calls(evidence, late, calls)
    yield from _gaps(evidence, late)


@dataclass(frozen=True)
class _Late:
    """The gaps of a GPU in which the host was late (indices), how much of each was of its making, and of that what was what, ns."""

    gaps: Int64
    parts: dict[str, Int64]

    def total(self, kind: str) -> int:
        return int(self.parts[kind].sum()) if kind in self.parts else 0


def _parts(gpu: GpuIdle, loading: Intervals, calls: dict[str, tuple[Array, Intervals]]) -> _Late:
    gaps = np.flatnonzero(gpu.late)
    start, end = gpu.start[gaps], gpu.end[gaps]
    left = end - start - gpu.synchronisation[gaps]
    parts = {}
    for name, spans in (("loading", loading), *((kind, spans) for kind, (_, spans) in calls.items())):
        if len(spans.start):
            parts[name] = np.minimum(left, time_within(spans, start, end))
            left = left - parts[name]
    small = end - start <= SMALL_GAP.value
    return _Late(gaps, {**parts, "small": np.where(small, left, 0), "large": np.where(small, 0, left)})


def _data_loader(evidence: Evidence, late: list[_Late], loading: Intervals) -> Iterator[Suggestion]:
    time = sum(of.total("loading") for of in late)
    if evidence.exceeds(time, IDLE):
        yield Suggestion("data_loader", "Data loading", Place(operator="DataLoader"), time, time,
            f"GPUs were idle for {format_time(time)} while the next batch was loaded ({len(loading.start):,} times, "
            f"{format_time(length(loading))} in all).",
            "DataLoader(num_workers=..., pin_memory=True, prefetch_factor=..., persistent_workers=True); less work a sample, or "
            "on the GPU.")  # fmt: skip


def _calls(evidence: Evidence, late: list[_Late], calls: dict[str, tuple[Array, Intervals]]) -> Iterator[Suggestion]:
    api = evidence.result.api_calls
    for kind, title, cause, advice in (
        ("allocation", "Memory is allocated", "allocated or released memory",
         "If they are of a first use, record after a warm-up. Allocate before the loop and reuse; no empty_cache() in it; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; "
         "cudaMallocAsync in one's own code."),
        ("calls", "Other CUDA calls", "was in calls that neither launch nor wait",
         "If they are of the first use (contexts, modules that are loaded, handles), record after a warm-up; else make what they make "
         "once and keep it."),
    ):  # fmt: skip
        time = sum(of.total(kind) for of in late)
        if not evidence.exceeds(time, IDLE):
            continue
        rows = calls[kind][0]
        spent = np.zeros(len(rows), np.int64)
        for gpu in evidence.idle:
            gaps = Intervals(np.zeros(len(gpu.start), np.int64), gpu.start, gpu.end)
            spent += time_within(gaps, api["start"][rows], np.maximum(api["end"][rows], api["start"][rows]))
        used = rows[spent > 0]
        name, count = _heaviest(api, used, spent[spent > 0])
        place = of_moments(evidence.result, api["thread"][used], api["start"][used], spent[spent > 0])
        yield Suggestion(kind, title, replace(place, call=name), time, time,
            f"GPUs were idle for {format_time(time)} while the host {cause}, most in {in_sentence(name)} ({count:,} calls).", advice)  # fmt: skip


def _gaps(evidence: Evidence, late: list[_Late]) -> Iterator[Suggestion]:
    result = evidence.result
    busy = sum(length(union_of_all([work["compute"], work["communication"]])) for work in evidence.work.values())
    for kind in ("small", "large"):
        time = sum(of.total(kind) for of in late)
        if not evidence.exceeds(time, IDLE):
            continue
        count = sum(int(np.count_nonzero(of.parts[kind])) for of in late)
        work = []
        for gpu, of in zip(evidence.idle, late, strict=True):
            some = np.flatnonzero(of.parts[kind])
            for name, which, rows in gpu.work_after(of.gaps[some]):
                work.append((result.tables[name], rows, of.parts[kind][some[which]]))
        place = replace(of_work(result, work), before=True)
        longest = max(int(of.parts[kind].max(initial=0)) for of in late)
        if kind == "small":
            lasted = np.concatenate([t["end"][rows] - t["start"][rows] for t, rows, _ in work])
            yield Suggestion("launch_bound", "Launches are late", place, time, time,
                f"{count:,} gaps of {format_time(time / count)} on average, none longer than {format_time(SMALL_GAP.value)}: each "
                f"launch came only after the GPU had done the one before. The work after them takes {format_time(float(np.median(lasted)))} "
                "at the median.",
                "CUDA graphs, torch.compile(mode=\"reduce-overhead\"), fused optimizers (fused=True, foreach=True), fewer and larger kernels.")  # fmt: skip
            continue
        batch = (
            " A larger batch gives each launch more work." if 100 * busy < UTILISATION.value * evidence.worked else ""
        )
        yield Suggestion("host_bound", "Host is late", place, time, time,
            f"The GPU waited {format_time(time)} in {count:,} gaps longer than {format_time(SMALL_GAP.value)} (the longest "
            f"{format_time(longest)}) for work that the host had not launched yet: it was in code of its own.",
            "See what the host does there (sources=\"stacks\", --view regions, --view steps); take Python, logging and preparing of input "
            f"out of the loop, or do it in another thread.{batch}")  # fmt: skip


def _other_calls(api: Table) -> dict[str, tuple[Array, Intervals]]:
    """Rows and spans of the calls that neither launch nor wait, by what they do."""
    used, which = renumbered(api.codes("name"))
    kinds = np.array([_kind(api.strings[code]) for code in used.tolist()], np.uint8)
    out = {}
    for number, kind in ((1, "allocation"), (2, "calls")):
        rows = np.flatnonzero((kinds == number)[which]) if (kinds == number).any() else np.zeros(0, np.intp)
        out[kind] = rows, union_of(api["start"][rows], api["end"][rows])
    return out


def _kind(call: str) -> int:
    if any(part in call for part in _ALLOCATES):
        return 1
    return 0 if is_wait(call) or "Launch" in call or "Async" in call else 2


def _heaviest(api: Table, rows: Array, weight: Int64) -> tuple[str, int]:
    """The call that most of the weight is in, and how often it was made."""
    used, which = renumbered(api.codes("name")[rows])
    if not len(used):
        return "", 0
    best = int(np.argmax(sum_by_group(which, weight, len(used))))
    return str(api.strings[int(used[best])]), int(np.count_nonzero(which == best))
