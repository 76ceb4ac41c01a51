"""The timeline: everything that ran, when and where."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.data.coverage import unobserved
from cuptiprof.data.result import Result
from cuptiprof.page.packed import PageColumn
from cuptiprof.page.section import Section
from cuptiprof.page.timeline_slices import RunSlices, counter_tracks_of, time_span
from cuptiprof.text.units import format_time

MOST_SLICES = 1_000_000
_PARTS = (
    "slices",
    "text",
    "colours",
    "view",
    "rows",
    "levels",
    "marks",
    "unobserved",
    "paint",
    "overlay",
    "map",
    "panel",
    "input",
    "frame",
)


def timeline(result: Result) -> Section | None:
    span = time_span(result)
    if span is None:
        return None
    first, last = span
    run = RunSlices(result, first, last)
    drawn = run.lanes.drawn(MOST_SLICES)
    position, is_work = drawn.position, drawn.is_work()
    cause = run.cause(position)
    caused = np.full(int((position >= 0).sum()), -1, np.int64)
    caused[position[position >= 0]] = cause[position >= 0]
    forward, backward = run.passes(position)
    missing = _unobserved(result, first, last)
    columns: dict[str, PageColumn] = {
        "span": np.array([last - first], np.int64),
        **drawn.columns(),
        "cause": np.diff(caused[is_work], prepend=0),
        "pair_forward": np.diff(forward, prepend=0),
        "pair_backward": np.diff(backward, prepend=0),
        **_sizes(run, position),
        **_levels(result, first, run),
        **missing,
    }
    summary = "W and S zoom, A and D move, a click tells what a slice is; / searches."
    if drawn.left_out:
        summary += (
            f" Only the {MOST_SLICES:,} longest slices are drawn; {drawn.left_out:,} of at most {format_time(drawn.shortest)} "
            "are left out."
        )
    if len(missing["unobserved_gap"]):
        summary += " Grey: nothing was observed; what ran then is not known."
    scripts = (*(f"timeline_{part}.js" for part in _PARTS), "timeline.js")
    return Section(
        "timeline",
        "Timeline",
        summary,
        columns=columns,
        mount="timeline",
        scripts=scripts,
        styles=("timeline.css",),
        wide=True,
    )


def _sizes(run: RunSlices, position: Any) -> dict[str, PageColumn]:
    at = np.concatenate([position[first : first + len(size)] for first, size in run.sizes])
    size = np.concatenate([size for _, size in run.sizes]).astype(np.int64)
    order = np.argsort(at, kind="stable")
    order = order[at[order] >= 0]
    return {"sized": np.diff(at[order], prepend=0), "size": size[order]}


def _unobserved(result: Result, first: int, last: int) -> dict[str, Int64]:
    """Gaps before and lengths of the times in which the session was paused, ns."""
    began, ended = unobserved(result.metadata)
    start, end = np.clip(began, first, last) - first, np.clip(ended, first, last) - first
    some = end > start
    start, end = start[some], end[some]
    return {"unobserved_gap": start - np.r_[np.int64(0), end[:-1]], "unobserved_length": end - start}


def _levels(result: Result, first: int, run: RunSlices) -> dict[str, PageColumn]:
    tracks = list(counter_tracks_of(result, first))
    return {
        "level_name": [name for _, name, _, _, _ in tracks],
        "level_group": [run.gpu(device) for device, _, _, _, _ in tracks],
        "level_unit": [unit for _, _, unit, _, _ in tracks],
        "level_points": np.array([len(time) for _, _, _, time, _ in tracks], np.int64),
        "point_gap": np.concatenate([np.diff(time, prepend=0) for _, _, _, time, _ in tracks])
        if tracks
        else np.zeros(0, np.int64),
        "point_value": np.concatenate([values for *_, values in tracks]) if tracks else np.zeros(0),
    }
