"""What is told of a job, as reports: a table a question, with what is missing above it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from cuptiprof.errors import ResultError
from cuptiprof.io.collective_dump import dumps_in, read_collective_dumps
from cuptiprof.job.clocks import Alignment, align_clocks
from cuptiprof.job.engines import Tables, asking
from cuptiprof.job.fleet import ANALYSES, answer, step_series
from cuptiprof.job.host_scores import host_scores
from cuptiprof.job.open_job import Job
from cuptiprof.job.rank_calls import Calls, read_calls
from cuptiprof.job.rank_text import count_of, ranks_text
from cuptiprof.job.step_changes import step_changes
from cuptiprof.job.stragglers import THRESHOLD, rank_scores
from cuptiprof.job.stuck_collectives import stuck_collectives
from cuptiprof.report.model import Column, Report, View, left_out
from cuptiprof.text.addresses import shown_path
from cuptiprof.text.names import display_name
from cuptiprof.text.units import check_time_unit


class JobView(NamedTuple):
    """A title and its columns."""

    title: str
    columns: tuple[Column, ...]


_RANK = Column("rank", "Rank", "count")
_HOST = Column("host", "Host", "text", rank=2)
_SLOWEST = Column("slowest_rank", "Slowest rank", "count")
_IMBALANCE = Column("imbalance", "Most by mean", "percent")
JOB_VIEWS: dict[str, JobView] = {
    "ranks": JobView("Ranks, the one that holds the others up most first", (
        _RANK, _HOST, Column("cause", "Cause", "label"), Column("stage_ns", "Outside of collectives, a step", "duration", rank=1),
        Column("stage", "Stage score", "percent"), Column("gpu", "GPU score", "percent"), Column("link", "Link score", "percent"),
        Column("late_ns", "Late at collectives", "duration", rank=1), Column("last", "Comes last", "percent", rank=3))),
    "hosts": JobView("Hosts, the one that holds the others up most first", (
        Column("host", "Host", "text"), Column("ranks", "Ranks", "count"), Column("slow", "Slow ranks", "count"), Column("cause", "Cause", "label"),
        Column("stage", "Stage score", "percent"), Column("gpu", "GPU score", "percent"), Column("link", "Link score", "percent"),
        Column("late_ns", "Late at collectives", "duration", rank=1))),
    "kernels": JobView("Kernels of all ranks", (
        Column("name", "Name", "text", is_function=True), Column("ranks", "Ranks", "count"), Column("launches", "Launches", "count", rank=1),
        Column("total_ns", "Time", "duration"), Column("least_ns", "Least of a rank", "duration", rank=2),
        Column("most_ns", "Most of a rank", "duration", rank=1), _SLOWEST, _IMBALANCE)),
    "steps": JobView("Steps by rank", (
        _RANK, Column("steps", "Steps", "count"), Column("median_ns", "Median", "duration"), Column("least_ns", "Shortest", "duration"),
        Column("most_ns", "Longest", "duration"), Column("score", "Score", "percent"))),
    "gpus": JobView("Computation and communication by GPU", (
        _RANK, Column("device", "GPU", "count"), Column("span_ns", "First to last kernel", "duration", rank=1),
        Column("computation_ns", "Computation", "duration"), Column("communication_ns", "Communication", "duration"),
        Column("overlap_ns", "Both at once", "duration"), Column("idle_ns", "Neither", "duration"))),
    "imbalance": JobView("Imbalance of computation by step", (
        Column("step", "Step", "count"), Column("ranks", "Ranks", "count"), Column("mean_ns", "Mean", "duration"),
        Column("most_ns", "Most", "duration"), _SLOWEST, _IMBALANCE)),
    "collectives": JobView("Collectives of all ranks", (
        Column("name", "Name", "text"), Column("group_size", "Group size", "count"), Column("in_bytes", "Bytes", "bytes"),
        Column("groups", "Groups", "count", rank=2), Column("ranks", "Ranks", "count", rank=2), Column("calls", "Calls", "count"),
        Column("total_ns", "Time", "duration"), Column("transfer_ns", "Transfer", "duration"), Column("waiting_ns", "Waiting", "duration"),
        Column("unmatched", "Unmatched", "count", rank=1))),
    "stuck": JobView("Collectives that ranks do not do together, by PyTorch's flight recorder", (
        Column("group", "Group", "text"), Column("number", "Number", "count"), Column("problem", "Problem", "label"),
        Column("text", "What", "text"), Column("where", "Where", "text", rank=1), Column("after", "Later ones too", "count", rank=2))),
    "clocks": JobView("Clocks by that of the reference rank", (
        _RANK, _HOST, Column("offset_ns", "Ahead by", "duration"), Column("drift_ppm", "Drift (ppm)", "metric_number"),
        Column("residual_ns", "Residual", "duration"), Column("ends", "Collectives", "count"))),
}  # fmt: skip


class JobQuestions:
    """A job and its tables; what several views need is asked once."""

    def __init__(self, job: Job, tables: Tables) -> None:
        self.job, self._tables = job, tables
        self._aligned: tuple[Calls, Alignment] | None = None

    def aligned(self) -> tuple[Calls, Alignment]:
        """All calls of collectives, and the clocks by them."""
        if self._aligned is None:
            calls = read_calls(self._tables)
            self._aligned = calls, align_clocks(calls, self.job.ranks)
        return self._aligned

    def report(
        self, view: str = "ranks", *, units: str = "auto", limit: int | None = None, demangle: bool = True
    ) -> Report:
        """
        Raises:
            ResultError: an unknown view or unit, or a negative limit.
            CuptiprofError: the engine ran out of memory.
        """
        if view not in JOB_VIEWS:
            raise ResultError(f"unknown view {view!r}", hint=f"one of: {', '.join(JOB_VIEWS)}")
        check_time_unit(units)
        if limit is not None and limit < 0:
            raise ResultError(f"limit={limit}: rows to show cannot be negative")
        with asking():
            rows, footers = self._rows(view)
        shown = rows[:limit]
        columns = JOB_VIEWS[view].columns
        data = {c.key: [_shown(c, row[c.key], demangle) for row in shown] for c in columns}
        job = self.job
        simulated = ("SIMULATED device: not measured on a GPU",) if job.simulated else ()
        hosts = {run.host for run in job.runs.values()}
        return Report(
            view=f"job-{view}",
            title=JOB_VIEWS[view].title,
            header=(
                *simulated,
                f"{count_of(len(job), 'rank')} of {job.world_size:,} on {count_of(len(hosts), 'host')}",
                *job.notes(),
            ),
            content=View(
                columns, data, (*left_out(len(rows), len(shown)), *(footers if rows else ())), {"": _NONE[view]}
            ),
            losses={},
            losses_line=_losses(job),
            units=units,
            metadata={
                "folder": shown_path(job.folder),
                "world_size": job.world_size,
                "ranks": job.ranks,
                "missing": job.missing,
                "damaged": job.damaged,
                "simulated": job.simulated,
            },
        )

    def _rows(self, view: str) -> tuple[Sequence[Mapping[str, Any]], tuple[str, ...]]:
        hosts = {rank: run.host for rank, run in self.job.runs.items()}
        if view in ANALYSES:
            return answer(ANALYSES[view], self._tables).to_pylist(), self._changes() if view == "steps" else ()
        if view == "stuck":
            if self.job.files is not None:
                raise ResultError(
                    "dumps of PyTorch's flight recorder are read from a folder on this machine", hint="copy them here"
                )
            dumps = read_collective_dumps(dumps_in(self.job.folder))
            without = sorted(set(range(self.job.world_size)) - {dump.rank for dump in dumps})
            said = (f"No dump of {ranks_text(without)}",) if dumps and without else ()
            return [asdict(one) for one in stuck_collectives(dumps)], said
        calls, alignment = self.aligned()
        if view in ("ranks", "hosts"):
            scores = rank_scores(self._tables, calls, hosts, alignment)
            if view == "hosts":
                return [asdict(host) for host in host_scores(scores)], (_SCORES, _OF_HOSTS, *_residual(alignment))
            return [asdict(score) for score in scores], (_SCORES, *_residual(alignment))
        rows = [
            {**asdict(c), "host": hosts[r], "drift_ppm": 1e6 * c.drift} for r, c in sorted(alignment.clocks.items())
        ]
        return rows, _residual(alignment)

    def _changes(self) -> tuple[str, ...]:
        """Where the time of a step changed, in the series of those that all ranks have."""
        series = answer(step_series, self._tables)
        ranks, step, longest = (np.asarray(series[c].to_numpy(), np.int64) for c in ("ranks", "step", "longest_ns"))
        whole = ranks == ranks.max(initial=0)
        return tuple(
            f"From step {at:,} on the longest of the ranks takes {after / before:.2f} times as long as before"
            for at, before, after in step_changes(step[whole], longest[whole])
        )


_SCORES = (
    f"Scores: best of all ranks by own; below {THRESHOLD:.0%} a rank is a straggler, and Cause says of what. "
    "Stage: outside of collectives; GPU: medians of kernels; link: transfers of its groups."
)
_OF_HOSTS = "Of a host the medians of its ranks; Cause is that of at least half of them."
_NONE = {
    "ranks": "No rank.",
    "hosts": "No rank.",
    "kernels": "No rank has kernels.",
    "steps": "No rank marked steps (profile.step()).",
    "gpus": "No rank has kernels.",
    "imbalance": "No rank has kernels that compute.",
    "collectives": "No rank has collectives (the activity collectives records them).",
    "stuck": "None: all ranks did the same, or no dumps (nccl_trace_rank_RANK) lie in the folder.",
    "clocks": "No clocks could be aligned: that takes collectives of ranks with one another (the activity collectives records them).",
}


def _shown(column: Column, value: Any, demangle: bool) -> Any:
    """As views have it: percent from a fraction, None for what is not known."""
    if value is None or value != value:
        return None
    if column.is_function:
        return display_name(value, demangle)
    return 100 * value if column.kind == "percent" else value


def _residual(alignment: Alignment) -> tuple[str, ...]:
    if not alignment.clocks:
        return ("Clocks were not aligned: times of different ranks are not compared",)
    said = f"Clocks by rank {alignment.reference}; ends of collectives agree to {alignment.residual_ns / 1000:,.1f} us (the worst rank's median)"
    if alignment.unaligned:
        said += f"; not aligned, and compared with none: {ranks_text(alignment.unaligned)}"
    return (said,)


def _losses(job: Job) -> str:
    lossy = [rank for rank, run in job.runs.items() if any(run.header.losses.values())]
    return f"Records were lost on {ranks_text(lossy)}: cuptiprof report says how many" if lossy else ""
