"""Rows of the same points from several processes, as one: what differs between processes is then in the intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from cuptiprof.bench.results.measurement import Measurement
from cuptiprof.bench.results.parts import Discard, Interval
from cuptiprof.bench.results.row import Row
from cuptiprof.errors import ResultError
from cuptiprof.stats.between import MIN_FREEDOM, student_quantile

CONFIDENCE = 0.95
SAME_IN_ALL = ("strategy", "l2")


def pool_rows(processes: Iterable[Sequence[Row]]) -> tuple[Row, ...]:
    """The points of several processes, each once, in the order of the first that has it; failures where no process has measured it.

    Rows that are of several processes already count as those.

    Raises:
        ResultError: a point was measured differently, or on another chip.
    """
    rows: dict[tuple[str, str], list[Row]] = {}
    for row in (row for process in processes for row in process):
        rows.setdefault(row.key, []).append(row)
    return tuple(map(_pooled_row, rows.values()))


def _pooled_row(rows: list[Row]) -> Row:
    measured = [row.measurement for row in rows if row.measurement is not None]
    if len(measured) < 2:
        return next((row for row in rows if row.measurement is not None), rows[0])
    first = measured[0]
    for m in measured[1:]:
        other = [name for name in SAME_IN_ALL if getattr(m, name) != getattr(first, name)]
        if other or m.environment.get("chip") != first.environment.get("chip"):
            raise ResultError(f"{rows[0].title} was not measured in the same way: another {(*other, 'chip')[0]}")
    return replace(rows[0], measurement=_pooled(measured), failure=None)


def _pooled(measured: list[Measurement]) -> Measurement:
    first = measured[0]
    taken = np.cumsum([0, *(len(m.samples) + len(m.discarded) for m in measured)])
    spans, clocks = [m.span for m in measured], [m.sm_hz for m in measured]
    energies = [m.energy_per_call for m in measured if not math.isnan(m.energy_per_call)]
    peaks = [m.peak_memory for m in measured if m.peak_memory is not None]
    of_each = np.concatenate([m.run_medians() if m.runs else [m.median] for m in measured])
    medians = np.log(of_each) if of_each.min() > 0 else np.zeros(0)
    notes = list(dict.fromkeys(note for m in measured for note in m.notes))
    if medians.size:
        notes.append(
            f"{len(of_each)} processes, whose medians differ by {100 * math.expm1(float(medians.std(ddof=1))):.2g} % (one sigma)"
        )
    return replace(
        first,
        samples=np.concatenate([m.samples for m in measured]),
        times=np.concatenate([m.times for m in measured]),
        span=np.concatenate(spans) if all(map(len, spans)) else np.empty(0),
        sm_hz=np.concatenate(clocks) if all(map(len, clocks)) else np.empty(0),
        energy_per_call=float(np.mean(energies)) if energies else math.nan,
        peak_memory=max(peaks, default=None),
        reported={},
        runs=tuple(n for m in measured for n in m.runs or (len(m.samples),)),
        tick=max(m.tick for m in measured),
        interval=_interval(medians) if medians.size else first.interval,
        discarded=tuple(
            Discard(d.index + int(at), d.value, d.reason) for m, at in zip(measured, taken[:-1], strict=True) for d in m.discarded
        ),
        converged=all(m.converged for m in measured),
        notes=tuple(notes),
    )  # fmt: skip


def _interval(medians: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Interval:
    """Of the geometric mean of the processes' medians, by Student's t; no confidence for fewer than three."""
    centre, freedom = float(medians.mean()), medians.size - 1
    if freedom < MIN_FREEDOM:
        return Interval(math.exp(centre), math.exp(float(medians.min())), math.exp(float(medians.max())), 0.0)
    reach = student_quantile((1 + CONFIDENCE) / 2, freedom) * float(medians.std(ddof=1)) / math.sqrt(medians.size)
    return Interval(math.exp(centre), math.exp(centre - reach), math.exp(centre + reach), CONFIDENCE)
