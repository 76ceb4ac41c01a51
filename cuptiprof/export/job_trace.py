"""One trace of several ranks of a job: each is a process with its GPUs, all by one clock, with arrows through the collectives that they do together."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError
from cuptiprof.export import chrome, perfetto
from cuptiprof.export.chrome.clock import Clock
from cuptiprof.export.chrome.trace_layout import TraceLayout
from cuptiprof.export.chrome.trace_place import Meetings, TracePlace
from cuptiprof.export.formats import find_format
from cuptiprof.io.files import replacing_file
from cuptiprof.job.clocks import Alignment
from cuptiprof.job.open_job import Job
from cuptiprof.job.rank_calls import Calls
from cuptiprof.job.rank_part import StepRange, part_of_rank
from cuptiprof.job.rank_text import count_of, ranks_text
from cuptiprof.text.addresses import shown_path
from cuptiprof.text.names import printable

_BEFORE_NS = 3_600 * 10**9
"""A rank whose part begins that much before that of the first one has times of its own week, too."""


@dataclass(frozen=True)
class JobTrace:
    """What was written.

    Attributes:
        ranks: in the trace. left_out: ranks of the job that could not be placed on its clock.
        kernels: in it. residual_ns: the worst of its ranks' clocks; NaN: there is one rank.
    """

    ranks: list[int]
    left_out: list[int]
    kernels: dict[int, int]
    residual_ns: float

    def __str__(self) -> str:
        said = f"{ranks_text(self.ranks)}, {count_of(sum(self.kernels.values()), 'kernel')}"
        if len(self.ranks) > 1:
            said += f"; ends of collectives agree to {self.residual_ns / 1000:,.1f} us (the worst rank's median)"
        if self.left_out:
            said += f"; not aligned, and left out: {ranks_text(self.left_out)}"
        return said


def export_job(
    job: Job,
    aligned: tuple[Calls, Alignment],
    path: str | os.PathLike[str],
    *,
    ranks: Sequence[int] | None = None,
    steps: StepRange | None = None,
    overwrite: bool = False,
) -> JobTrace:
    """Write one Chrome or Perfetto trace of ranks of a job, by the clock of its reference rank. Samples of counters and of the system, the allocator's events
    and CUPTI's overhead are in the traces of single ranks only.

    Args:
        aligned: calls and clocks (``JobQuestions.aligned``).
        ranks: None: all whose clocks are aligned.
        steps: None: all.

    Raises:
        ResultError: no such rank or step, a rank whose clock is not aligned, another format, or the file cannot be written.
    """
    name = os.fspath(path)
    chosen = find_format(name, None)
    if chosen.name not in ("chrome", "perfetto"):
        raise ResultError(
            f"{chosen.name} has no place for several ranks", hint="a trace has: FILE.pftrace, FILE.json, FILE.json.gz"
        )
    calls, alignment = aligned
    those, left_out = _chosen(job, alignment, ranks)
    reference = alignment.reference if alignment.reference in job.runs else those[0]
    residual = max((alignment.clocks[r].residual_ns for r in those if r in alignment.clocks), default=float("nan"))
    done = JobTrace(those, left_out, {}, residual if len(those) > 1 else float("nan"))
    with replacing_file(path, overwrite=overwrite) as temporary:
        parts = _parts(job, alignment, those, steps, done.kernels)
        first = next(parts)
        clock = _clock(job.runs[reference].metadata if len(those) > 1 else first.metadata, first)
        meetings = _meetings(calls, alignment, those, steps)
        layouts = _layouts(chain([first], parts), job, alignment, those, clock, meetings)
        _write(chosen.name, _head(job, alignment, done, clock), clock, layouts, temporary, name.endswith(".gz"))
    return done


def _chosen(job: Job, alignment: Alignment, ranks: Sequence[int] | None) -> tuple[list[int], list[int]]:
    unknown = sorted({*(ranks or ())} - {*job.ranks})
    if unknown:
        raise ResultError(
            f"{shown_path(job.folder)}: {ranks_text(unknown)}: no run", hint=f"there are {ranks_text(job.ranks)}"
        )
    wanted = sorted({*job.ranks} if ranks is None else {*ranks})
    without = [rank for rank in wanted if rank not in alignment.clocks]
    if len(wanted) < 2 or not without:
        return wanted, []
    if ranks is None and len(wanted) - len(without) > 1:
        return [rank for rank in wanted if rank in alignment.clocks], without
    raise ResultError(
        f"{ranks_text(without)} cannot be shown beside others: the clock is not aligned with theirs",
        hint="clocks are aligned by collectives that ranks end together (--activities ...,collectives); leave such ranks out with --ranks, or show one alone",
    )


def _parts(
    job: Job, alignment: Alignment, ranks: list[int], steps: StepRange | None, kernels: dict[int, int]
) -> Iterator[Result]:
    for rank in ranks:
        clock = alignment.clocks.get(rank) if len(ranks) > 1 else None
        part = part_of_rank(job.rank(rank), clock, steps)
        kernels[rank] = len(part.kernels)
        yield part


def _clock(metadata: Any, part: Result) -> Clock:
    begin = TraceLayout(part).first
    return Clock(Result({}, dict(metadata)), begin - _BEFORE_NS)


def _layouts(
    parts: Iterable[Result],
    job: Job,
    alignment: Alignment,
    ranks: list[int],
    clock: Clock,
    meetings: dict[int, Meetings],
) -> Iterator[TraceLayout]:
    for index, (rank, part) in enumerate(zip(ranks, parts, strict=True)):
        of = alignment.clocks.get(rank) if len(ranks) > 1 else None
        labels = [f"pid {part.metadata['pid']}"] if "pid" in part.metadata else []
        if of is not None:
            labels.append(
                f"clock {of.offset_ns / 1000:,.1f} us ahead of rank {alignment.reference}'s, residual {of.residual_ns / 1000:,.1f} us"
            )
        name = f"rank {rank} ({job.runs[rank].host})"
        place = TracePlace(
            rank, index, printable(name), printable(", ".join(labels)), meetings.get(rank, Meetings.none())
        )
        yield TraceLayout(part, clock, place)


def _meetings(calls: Calls, alignment: Alignment, ranks: list[int], steps: StepRange | None) -> dict[int, Meetings]:
    """Of each rank the calls in which two or more of them take part."""
    if len(ranks) < 2:
        return {}
    use = np.isin(calls.rank, ranks)
    if steps is not None:
        use &= (calls.step - 1 >= steps.first) & (calls.step - 1 <= steps.last)
    use &= (np.bincount(calls.call[use], minlength=int(calls.call.max(initial=-1)) + 1) > 1)[calls.call]
    rank, call, start = calls.rank[use], calls.call[use], calls.start[use].copy()
    for each in ranks:
        start[rank == each] = alignment.clocks[each].moved(start[rank == each])
    order = np.lexsort((rank, start, call))
    ordered = call[order]
    phase = np.ones(len(call), np.int64)
    phase[order[np.r_[True, ordered[1:] != ordered[:-1]][: len(call)]]] = 0
    phase[order[np.r_[ordered[1:] != ordered[:-1], True][: len(call)]]] = 2
    return {each: Meetings(start[m], call[m] + 1, phase[m]) for each in ranks for m in [rank == each]}


def _head(job: Job, alignment: Alignment, done: JobTrace, clock: Clock) -> dict[str, Any]:
    """Members of the Chrome trace."""
    clocks = {rank: alignment.clocks[rank] for rank in done.ranks if len(done.ranks) > 1}
    return {
        "schemaVersion": 1,
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": clock.base_ns,
        "traceName": f"{'simulated ' if job.simulated else ''}job of {job.world_size} ranks: {ranks_text(done.ranks)}",
        "simulated": job.simulated,
        "distributedInfo": {"world_size": job.world_size, "ranks": done.ranks},
        "clocks": {
            "reference": alignment.reference,
            "residual_ns": done.residual_ns if clocks else None,
            "ranks": {
                str(r): {"offset_ns": c.offset_ns, "drift": c.drift, "residual_ns": c.residual_ns, "collectives": c.ends}
                for r, c in clocks.items()
            },
            "unaligned": alignment.unaligned,
        },
        "losses": {
            str(r): {n: c for n, c in job.runs[r].header.losses.items() if c}
            for r in done.ranks
            if any(job.runs[r].header.losses.values())
        },
    }  # fmt: skip


def _write(
    name: str, head: dict[str, Any], clock: Clock, layouts: Iterable[TraceLayout], path: Path, compress: bool
) -> None:
    if name == "chrome":
        chrome.write_ranks(head, layouts, path, compress)
    else:
        perfetto.write_ranks(clock, layouts, path, compress)
