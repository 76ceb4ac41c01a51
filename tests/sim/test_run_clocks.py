"""Pairs of the run clock and Unix time: over the whole of a session, so that a clock that was set in between is seen where it was."""

from __future__ import annotations

from itertools import pairwise

import pytest

import cuptiprof
from cuptiprof.session import unix_times
from cuptiprof.session.unix_times import ClockPair, ClockPairs
from cuptiprof.sim.sim_device import SimDevice


def test_pairs_are_taken_as_the_session_goes_on(sim: SimDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unix_times, "_EVERY_NS", 0)
    with cuptiprof.profile(device="sim") as prof:
        for _ in range(5):
            sim.launch("k")
            prof.step()
        before = prof.snapshot().metadata["clock_pairs"]
        prof.counts()
    pairs = prof.result().metadata["clock_pairs"]
    assert len(before) == 7 and len(pairs) == 9  # the start, five steps, the snapshot; counts(), the end
    assert pairs[:7] == before and pairs == sorted(pairs)
    begin, end = (prof.result().metadata[f"{what}_time_ns"] for what in ("start", "stop"))
    assert abs(pairs[0][0] - begin) < 10**9 and pairs[-1][0] >= end


def test_none_more_often_than_every_few_seconds(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim") as prof:
        for _ in range(200):
            prof.step()
    began, ended = (prof.result().metadata["clock_pairs"][i][0] for i in (0, -1))
    assert len(prof.result().metadata["clock_pairs"]) <= 2 + (ended - began) // 5_000_000_000


def test_a_clock_that_was_set_is_seen_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour of looks each second, in which Unix time is set back by 3 s after half an hour."""
    now = [10**9]

    def reading() -> ClockPair:
        return ClockPair(now[0], 10**18 + now[0] - (3 * 10**9 if now[0] > 1800 * 10**9 else 0), 100)

    monkeypatch.setattr(unix_times, "clock_reading", reading)
    monkeypatch.setattr(unix_times._core, "now_ns", lambda: now[0])
    clocks = ClockPairs()
    for second in range(2, 3601):
        now[0] = second * 10**9
        clocks.look()
    run = cuptiprof.Result({}, {"clock_pairs": clocks.rows()})
    assert run.clock_to_unix(1790 * 10**9) == 10**18 + 1790 * 10**9
    assert run.clock_to_unix(1810 * 10**9) == 10**18 + 1807 * 10**9


def test_days_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0]
    monkeypatch.setattr(unix_times, "clock_reading", lambda: ClockPair(now[0], now[0], 1))
    monkeypatch.setattr(unix_times._core, "now_ns", lambda: now[0])
    clocks = ClockPairs()
    for _ in range(100_000):
        now[0] += 5 * 10**9
        clocks.look()
    times = [run for run, _ in clocks.rows()]
    assert 500 <= len(times) <= 1024 and times[0] == 0
    assert max(b - a for a, b in pairwise(times)) <= 5 * 10**9 * 256
