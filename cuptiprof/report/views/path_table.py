"""The critical path: what the whole time of a run went to, by name and by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from cuptiprof.analysis.arrays.aggregate import sum_by_group
from cuptiprof.analysis.dependencies.critical_path import critical_path
from cuptiprof.analysis.dependencies.path_rows import KINDS, PathRow, kinds, path_rows, path_steps
from cuptiprof.analysis.work.gpu_work import origin_ns
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, View
from cuptiprof.report.views.by_rank import rank_of, table

_RANK = Column("rank", "Rank", "count", rank=6)
_COLUMNS = (
    _RANK,
    Column("percent", "Time(%)", "percent", min_width=7),
    Column("time_ns", "Time", "duration", min_width=8),
    Column("saves_ns", "Could save", "duration", min_width=8),
    Column("pieces", "Pieces", "count", rank=3),
    Column("kind", "Kind", "label"),
    Column("name", "Name", "text", is_function=True),
    Column("operator", "Operator", "text", rank=1),
    Column("region", "Region", "text", rank=2),
)
_TITLES = ("Host", "Launch", "Kernel", "Commun.", "Copy", "Gap", "Sync", "Unknown")
_STEPS = (
    _RANK,
    Column("step", "Step", "label"),
    Column("start_ns", "Start", "instant", min_width=8, rank=5),
    Column("total_ns", "Total", "duration", min_width=8),
    *(
        Column(f"{kind}_ns", title, "duration", min_width=8, rank=4 if kind in ("copy", "sync", "unknown") else 0)
        for kind, title in zip(KINDS, _TITLES, strict=True)
    ),
)
_LEGEND = (
    "From the end back to the begin, what the next thing waited for; each moment once. host: a thread, in that operator or call;",
    "launch: from the launching call to the work; gap: between work and work that waited for it; sync: until the waiting call returned.",
    "Could save: what the run gains at most if a piece took no time, each alone, added up: until something else is waited for.",
)


def view(result: Result, *, demangle: bool = True, limit: int | None = None, ranks: Sequence[Result] = ()) -> View:
    """One row a rank, kind, name, operator and region; what took longest first."""
    found: list[tuple[int, int, PathRow]] = []
    facts: list[dict[str, int]] = []
    for run in (result, *ranks):
        path = critical_path(run)
        time = path.end - path.start
        rank, total = rank_of(run), int(time.sum())
        by_kind = sum_by_group(kinds(run, path), time, len(KINDS)).tolist()
        facts.append({"rank": rank, "total_ns": total} | _by_kind(by_kind))
        found += [(rank, total, row) for row in path_rows(run, path, demangle)]
    found.sort(key=lambda entry: -entry[-1].time)
    rows = [
        {
            **{key: value or None for key, value in asdict(row).items()},
            "rank": rank,
            "time_ns": row.time,
            "saves_ns": row.saves,
            "percent": 100.0 * row.time / total,
        }
        for rank, total, row in found
    ]
    line = [_line(fact) for fact in facts if fact["total_ns"]]
    return table(
        result,
        _COLUMNS,
        rows,
        limit=limit,
        what="calls or GPU activities",
        legend=(*line, *_LEGEND),
        facts={"paths": facts},
    )


def _by_kind(times: Sequence[int]) -> dict[str, int]:
    return {f"{kind}_ns": time for kind, time in zip(KINDS, times, strict=True)}


def _line(fact: dict[str, int]) -> str:
    shares = sorted(((100 * fact[f"{kind}_ns"] / fact["total_ns"], kind) for kind in KINDS), reverse=True)
    return f"Rank {fact['rank']}: " + ", ".join(f"{kind} {share:.2f}%" for share, kind in shares if share) + "."


def by_step(result: Result, *, demangle: bool = True, limit: int | None = None, ranks: Sequence[Result] = ()) -> View:
    """One row a rank and training step: the path cut at the steps."""
    del demangle
    rows = []
    for run in (result, *ranks):
        names, spans, time = path_steps(run, critical_path(run))
        for name, (start, end), times in zip(names, spans.tolist(), time.tolist(), strict=True):
            row = {"rank": rank_of(run), "step": name, "start_ns": start - origin_ns(run), "total_ns": end - start}
            rows.append(row | _by_kind(times))
    facts = {"origin_ns": origin_ns(result)}
    return table(result, _STEPS, rows, limit=limit, what="calls or GPU activities", legend=_LEGEND, facts=facts)
