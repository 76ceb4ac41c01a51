"""Results against those of an earlier run, point by point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cuptiprof.bench.results.cycles import in_cycles
from cuptiprof.bench.results.measurement import Measurement
from cuptiprof.bench.results.row import Row
from cuptiprof.bench.results.store import Results
from cuptiprof.errors import BenchError
from cuptiprof.stats.between import judge_runs, judge_sweep
from cuptiprof.stats.verdict import ALPHA, THRESHOLD, Kind, Verdict, judge

MUST_BE_EQUAL = ("chip", "simulated")
"""Times of two of these are not comparable."""
SAID_IF_OTHER = (
    "driver_version",
    "cupti_version",
    "torch_version",
    "triton_version",
    "cuptiprof_version",
    "host",
    "cpu",
)
EXPECTED_TO_CHANGE = (
    "python_version",
    "commit",
    "changed",
)  # what is expected to change: mostly one compares two commits


@dataclass(frozen=True)
class Difference:
    """Something that the two runs do not have in common.

    Attributes:
        loud: it may explain a difference of the times.
    """

    name: str
    base: str
    new: str
    loud: bool

    def __str__(self) -> str:
        return f"another {self.name.replace('_', ' ')}: {self.base} in the baseline, {self.new} now"


@dataclass(frozen=True)
class ComparedPoint:
    """A point of both runs.

    Attributes:
        verdict: None where there can be none.
        reason: of the verdict, or why there is none.
    """

    base: Row
    new: Row
    verdict: Verdict | None
    reason: str

    def fails(self, limit: float) -> bool:
        """Slower by at least `limit` (0.05: 5 %) for certain: SLOWER, and the whole interval of new / base is at or above 1 + limit."""
        v = self.verdict
        return v is not None and v.kind is Kind.SLOWER and v.low >= 1 + limit


@dataclass(frozen=True)
class BaselineComparison:
    """All points of two runs.

    Attributes:
        points: those of both, in the order of the new run.
        only_base, only_new: rows that have no partner.
        differences: of the environments.
        cycles: judged are times x SM clock.
    """

    points: tuple[ComparedPoint, ...]
    only_base: tuple[Row, ...]
    only_new: tuple[Row, ...]
    differences: tuple[Difference, ...]
    cycles: bool = False

    def failing(self, limit: float) -> tuple[ComparedPoint, ...]:
        """See :meth:`ComparedPoint.fails`."""
        return tuple(p for p in self.points if p.fails(limit))

    def counts(self) -> dict[str, int]:
        """Points by verdict; "NO VERDICT" for those without."""
        out = {kind.value: 0 for kind in Kind} | {"NO VERDICT": 0}
        for p in self.points:
            out[p.verdict.kind.value if p.verdict is not None else "NO VERDICT"] += 1
        return {name: n for name, n in out.items() if n}


def compare_results(
    base: Results, new: Results, *, threshold: float = THRESHOLD, across_chips: bool = False, cycles: bool = False
) -> BaselineComparison:
    """Judge each point that both have; that any is called FASTER or SLOWER wrongly happens in 5 % of such comparisons (``judge_sweep``).

    Args:
        threshold: of :func:`cuptiprof.stats.verdict.judge`.
        across_chips: judge times of different chips too.
        cycles: judge time x SM clock.
    """
    old = {row.key: row for row in base.rows}
    pairs = [(old[row.key], row) for row in new.rows if row.key in old]
    judged = [compare_rows(*pair, threshold=threshold, across_chips=across_chips, cycles=cycles) for pair in pairs]

    def at(pair: tuple[Row, Row]) -> Callable[[float], Verdict]:
        return lambda alpha: _judged(*pair, threshold, alpha, cycles)

    verdicts = iter(judge_sweep([at(pair) for pair, (v, _) in zip(pairs, judged, strict=True) if v is not None]))
    points = []
    for pair, (alone, reason) in zip(pairs, judged, strict=True):
        verdict = next(verdicts) if alone is not None else None
        points.append(ComparedPoint(*pair, verdict, verdict.reason if verdict is not None else reason))
    both = {p.new.key for p in points}
    return BaselineComparison(
        tuple(points),
        tuple(r for r in base.rows if r.key not in both),
        tuple(r for r in new.rows if r.key not in both),
        differences(base.environment, new.environment),
        cycles,
    )


def compare_rows(
    base: Row, new: Row, *, threshold: float = THRESHOLD, across_chips: bool = False, cycles: bool = False
) -> tuple[Verdict | None, str]:
    """The verdict on one point and its reason; None and why there is none."""
    a, b = base.measurement, new.measurement
    if a is None or b is None:
        if any(row.failure is not None and not row.failed for row in (base, new)):
            return None, "it was skipped"
        which = "in both runs" if a is None and b is None else "in the baseline" if a is None else "now"
        return None, f"it failed {which}"
    if why := _not_comparable(a, b, across_chips):
        return None, why
    try:
        verdict = _judged(base, new, threshold, ALPHA, cycles)
    except BenchError as e:
        return None, e.message
    except ValueError as e:
        return None, str(e)
    return verdict, verdict.reason


def _judged(base: Row, new: Row, threshold: float, alpha: float, cycles: bool) -> Verdict:
    """From the medians of the processes where one side has several; else from the samples."""
    a, b = base.measurement, new.measurement
    assert a is not None and b is not None
    if cycles:
        a, b = in_cycles(a), in_cycles(b)
    tick = a.known_tick, b.known_tick
    if a.runs or b.runs:
        return judge_runs(a.run_medians(), b.run_medians(), threshold=threshold, alpha=alpha, tick=tick)
    return judge(a.samples, b.samples, threshold=threshold, alpha=alpha, tick=tick)


def _not_comparable(a: Measurement, b: Measurement, across_chips: bool) -> str:
    for what, before, now in (("strategy", a.strategy, b.strategy), ("L2", a.l2, b.l2)):
        if before != now:
            return f"measured differently: {what} {_shown(before)} in the baseline, {_shown(now)} now"
    for name in MUST_BE_EQUAL:
        if a.environment.get(name) != b.environment.get(name) and not across_chips:
            return f"another chip: {_chip(a.environment)} in the baseline, {_chip(b.environment)} now"
    return ""


def differences(base: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[Difference, ...]:
    """What differs between two environments, the loud ones first."""
    return tuple(
        Difference(
            name, _shown(base.get(name, "unknown")), _shown(new.get(name, "unknown")), name not in EXPECTED_TO_CHANGE
        )
        for name in (*MUST_BE_EQUAL, *SAID_IF_OTHER, *EXPECTED_TO_CHANGE)
        if base.get(name) != new.get(name)
    )


def _chip(environment: Mapping[str, Any]) -> str:
    return _shown(environment.get("chip", "unknown")) + (" (simulated)" if environment.get("simulated") else "")


def _shown(value: Any) -> str:
    return str(value)[:80]
