"""Pairs of the run clock and Unix time: over the whole of a session, so that a clock that was set in between is seen where it was."""

from __future__ import annotations

import time

import cuptiprof
from cuptiprof.device.devices import SimulatedDevice
from cuptiprof.sim.sim_device import SimDevice

SECOND = 10**9


def test_pairs_are_taken_as_the_session_goes_on() -> None:
    """At its start, every few seconds although nobody calls it, with a snapshot, and at its end."""
    with cuptiprof.profile(device=SimulatedDevice(virtual_clock=True)) as prof:
        sim = SimDevice()
        began = sim.now()
        for seconds in (6, 12, 18):
            sim.advance(began + seconds * SECOND)
            until = time.monotonic() + 60
            while len(prof._session.clock_pairs()) < 1 + seconds // 6 and time.monotonic() < until:
                time.sleep(0.01)
        sim.launch("k")
        before = prof.snapshot().metadata["clock_pairs"]
    pairs = prof.result().metadata["clock_pairs"]
    assert pairs[: len(before)] == before and len(pairs) == len(before) + 1 == 6 and pairs == sorted(pairs)
    assert [round((run - began) / SECOND) for run, _ in before] == [0, 6, 12, 18, 18]
    begin, end = (prof.result().metadata[f"{what}_time_ns"] for what in ("start", "stop"))
    assert abs(pairs[0][0] - begin) < SECOND and pairs[-1][0] >= end


def test_none_more_often_than_every_few_seconds() -> None:
    with cuptiprof.profile(device="sim") as prof:
        for _ in range(200):
            prof.step()
            prof.counts()
    began, ended = (prof.result().metadata["clock_pairs"][i][0] for i in (0, -1))
    assert len(prof.result().metadata["clock_pairs"]) <= 2 + (ended - began) // (5 * SECOND)


def test_a_clock_that_was_set_is_seen_where_it_was() -> None:
    """An hour with a pair every five seconds, in which Unix time is set back by 3 s after half an hour."""
    pairs = [[s * SECOND, 10**18 + s * SECOND - (3 * SECOND if s > 1800 else 0)] for s in range(0, 3600, 5)]
    run = cuptiprof.Result({}, {"clock_pairs": pairs})
    assert run.clock_to_unix(1790 * SECOND) == 10**18 + 1790 * SECOND
    assert run.clock_to_unix(1810 * SECOND) == 10**18 + 1807 * SECOND
