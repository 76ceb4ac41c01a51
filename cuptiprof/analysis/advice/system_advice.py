"""Clocks that something held down while a GPU worked, and errors of a GPU: where the system was read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from cuptiprof.analysis.advice.evidence import Evidence
from cuptiprof.analysis.advice.heaviest_place import in_sentence
from cuptiprof.analysis.advice.suggestion import Place, Suggestion
from cuptiprof.analysis.arrays.aggregate import Intervals
from cuptiprof.analysis.arrays.intervals import length, time_within, union_of_all
from cuptiprof.analysis.thresholds import IDLE, THROTTLED, WORTH
from cuptiprof.analysis.training_steps.step_clocks import steps_of
from cuptiprof.analysis.training_steps.step_spans import gpu_steps, host_steps
from cuptiprof.analysis.utilization.system_events import (
    ERRORS,
    XID,
    GpuReadings,
    SystemEvent,
    gpu_readings,
)
from cuptiprof.data.clock_state import HOLDS, SLOWDOWNS
from cuptiprof.text.units import format_time

_TRY = {
    "hardware slowdown": "the board's power supply and cooling (`nvidia-smi -q -d PERFORMANCE` says more)",
    "software thermal slowdown": "more cooling: airflow, inlet temperature, fans",
    "hardware thermal slowdown": "more cooling: airflow, inlet temperature, fans, the heat sink's contact",
    "power brake": "the machine's power supplies: one asked the GPUs for less",
    "power cap": "a higher limit where the board allows one (`nvidia-smi -pl`), fewer bits of precision",
    "sync boost": "GPUs out of the group that boosts together",
    "display clock setting": "a display on another GPU",
}


def throttled(evidence: Evidence) -> Iterator[Suggestion]:
    """Time that kernels took longer because something held the SM clock."""
    for gpu in gpu_readings(evidence.result):
        work = evidence.work.get(gpu.device)
        if work is not None:
            yield from _of_gpu(evidence, gpu, union_of_all(list(work.values())))


def _of_gpu(evidence: Evidence, gpu: GpuReadings, busy: Intervals) -> Iterator[Suggestion]:
    shares = {
        kind: int(time_within(busy, held.start, held.end).sum()) for kind in HOLDS.values() for held in [gpu.held(kind)]
    }
    shares = {kind: time for kind, time in sorted(shares.items(), key=lambda one: -one[1]) if time}
    if not shares:
        return
    held = gpu.held(*shares)
    time = int(time_within(busy, held.start, held.end).sum())
    clock, whole = gpu.clock.within(busy), (busy.start[:1], busy.end[-1:])
    slow = float(clock.within(held).mean(*whole)[0])
    free = float(clock.within(held, inside=False).mean(*whole)[0])
    lost = max(1 - slow / free, 0.0) if np.isfinite(slow) and np.isfinite(free) else 0.0
    saves = min(int(time * lost), evidence.whole)
    is_costly = 100 * lost >= THROTTLED.value and evidence.exceeds(saves, WORTH)
    is_fault = any(kind in shares and 100 * shares[kind] >= IDLE.value * length(busy) for kind in SLOWDOWNS.values())
    if not is_costly and not is_fault:
        return
    what = ", ".join(f"{kind} for {format_time(of)}" for kind, of in shares.items())
    clocks = f"the SM clock was {slow:.0f} MHz then" if np.isfinite(slow) else "the SM clock was not read"
    clocks += f", {free:.0f} MHz otherwise" if np.isfinite(free) else ", and nothing says what it is otherwise"
    steps = _steps(evidence, [event for event in gpu.events() if event.kind in shares])
    yield Suggestion("throttled", "Clocks held down", Place(step=in_sentence(steps)), time, saves if is_costly else 0,
        f"Of the {format_time(length(busy))} in which GPU {gpu.device} worked, something held its clocks for {format_time(time)} ({what}): {clocks}.",
        f"See to {_TRY[next(iter(shares))]}; where runs are compared, lock the clocks (`nvidia-smi -lgc`).")  # fmt: skip


def errors_of_gpus(evidence: Evidence) -> Iterator[Suggestion]:
    """XIDs, and errors of memory that were not corrected."""
    for gpu in gpu_readings(evidence.result):
        events = [event for event in gpu.events() if event.kind in ERRORS]
        if not events:
            continue
        said = Counter(f"XID {event.text()}" if event.kind == XID else event.kind for event in events)
        what = "; ".join(f"{text} ({count:,})" if count > 1 else text for text, count in said.most_common(4))
        yield Suggestion("gpu_errors", "Errors of a GPU", Place(step=in_sentence(_steps(evidence, events))), 0, 0,
            f"GPU {gpu.device} had {len(events):,} errors during the run: {what}{'; ...' if len(said) > 4 else ''}.",
            "NVIDIA's \"XID Errors\" says what each asks for: a look at the program (13, 31), a reset, or another GPU (48, 64, 79, 95).")  # fmt: skip


def _steps(evidence: Evidence, events: Sequence[SystemEvent]) -> str:
    """The first steps in which any of these events was; empty: none was marked."""
    if not len(host_steps(evidence.result)):
        return ""
    steps = gpu_steps(evidence.result)
    inside = sorted({step for event in events for step in steps_of(event, steps).tolist()})
    return ", ".join(steps.name[i] for i in inside[:4]) + (", ..." if len(inside) > 4 else "")
