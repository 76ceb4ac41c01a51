"""Results of several processes as one, and sweeps compared as a whole."""

from __future__ import annotations

import numpy as np
import pytest
from bench_rows import ENVIRONMENT, failed, row

from cuptiprof.bench.results.baseline import compare_results
from cuptiprof.bench.results.measurement import Measurement
from cuptiprof.bench.results.parts import Discard
from cuptiprof.bench.results.row import Row
from cuptiprof.bench.results.store import Results, pool
from cuptiprof.errors import ResultError


def process(
    rng: np.random.Generator, points: int, offset: float = 0.02, slow: dict[int, float] | None = None
) -> Results:
    """One process: each point is off by `offset`, one sigma."""
    rows = [
        row(1000 * (slow or {}).get(i, 1.0) * float(np.exp(offset * rng.normal())), params={"n": i}, seed=int(rng.integers(1 << 30)))
        for i in range(points)
    ]  # fmt: skip
    return Results(tuple(rows), ENVIRONMENT)


def processes(rng: np.random.Generator, count: int, points: int, **options: object) -> Results:
    return pool([process(rng, points, **options) for _ in range(count)])  # type: ignore[arg-type]


def test_the_gate_fails_no_unchanged_sweep_and_finds_a_slow_point() -> None:
    """One process a side calls many of 20 unchanged points different; sixteen of each none, and a slow-down of 5 % is found."""
    rng = np.random.default_rng(1)
    alone = compare_results(process(rng, 20), process(rng, 20))
    assert sum(p.verdict is not None and p.verdict.differs for p in alone.points) >= 5
    same = compare_results(processes(rng, 16, 20), processes(rng, 16, 20))
    assert not same.failing(0.01) and not any(p.verdict.differs for p in same.points if p.verdict)
    slower = compare_results(processes(rng, 16, 20), processes(rng, 16, 20, slow={3: 1.06}))
    assert [p.new.params["n"] for p in slower.failing(0.01)] == [3]


def test_claims_hold_for_the_whole_sweep() -> None:
    """Without offsets: points whose difference is certain alone, but not among a hundred."""
    rng = np.random.default_rng(2)
    base = process(rng, 100, offset=0.0)
    found = compare_results(base, process(rng, 100, offset=0.0, slow={5: 1.5}), threshold=0.0)
    assert [p.new.params["n"] for p in found.points if p.verdict and p.verdict.differs] == [5]
    assert any("not certain among 100 points" in p.reason for p in found.points)


def test_what_a_pooled_measurement_holds() -> None:
    rows = [
        row(ns, params={"n": 1}, seed=i, discarded=(Discard(2, 9.0, "x"),)) for i, ns in enumerate((1000, 1020, 990))
    ]
    pooled = pool([Results((r,), ENVIRONMENT, (f"note {i % 2}",)) for i, r in enumerate(rows)])
    assert len(pooled) == 1 and pooled.notes == ("note 0", "note 1")
    m = pooled.rows[0].measurement
    assert m is not None and m.runs == (200, 200, 200) and len(m.samples) == 600
    assert [d.index for d in m.discarded] == [2, 203, 404] and len(m.places()) == 600
    assert m.run_medians() == pytest.approx([1000, 1020, 990], rel=0.005)
    assert m.interval.low < 985 and m.interval.high > 1020 and m.interval.confidence == 0.95
    assert any("3 processes, whose medians differ by 1.5 %" in n or "3 processes" in n for n in m.notes)
    back = Measurement.from_dict(m.to_dict())
    assert back.runs == m.runs
    third = row(1010, params={"n": 1}, seed=9)
    more = pool([pooled, Results((third,), ENVIRONMENT)]).rows[0].measurement  # as of four processes
    assert more is not None and more.runs == (200,) * 4 and "4 processes" in more.notes[-1]
    assert more.interval.median == pytest.approx((1000 * 1020 * 990 * 1010) ** 0.25, rel=0.005)
    with pytest.raises(ResultError, match="processes"):
        Measurement.from_dict({**m.to_dict(), "runs": [1, 2]})


def test_what_cannot_be_pooled() -> None:
    one = Results((row(params={"n": 1}),), ENVIRONMENT)
    assert pool([one]) is one
    other = Results((row(params={"n": 1}, strategy="event"),), ENVIRONMENT)
    with pytest.raises(ResultError, match="strategy"):
        pool([one, other])
    broken: Row = failed(params={"n": 1})
    assert pool([Results((broken,), ENVIRONMENT), one]).rows[0].measurement is not None
    two = pool([one, one]).rows[0].measurement
    assert two is not None and two.interval.confidence == 0  # nothing is known of two
