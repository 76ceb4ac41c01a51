"""Clocks of hosts by their collectives, and what is told of slow ranks: on generated jobs of which all is known."""

from __future__ import annotations

import numpy as np
import pytest
from job_tables import tables_of

from benchmarks.generated_job import GeneratedJob
from cuptiprof.job.clocks import align_clocks
from cuptiprof.job.host_scores import host_scores
from cuptiprof.job.rank_calls import Calls, read_calls
from cuptiprof.job.step_changes import step_changes
from cuptiprof.job.stragglers import rank_scores

RANKS = 64


def with_clocks(seed: int, **parameters: object) -> GeneratedJob:
    random = np.random.default_rng(1000 + seed)
    offset, drift = random.uniform(-5e6, 5e6, RANKS), random.uniform(-50e-6, 50e-6, RANKS)
    return GeneratedJob(seed=seed, offset_ns=offset, drift=drift, **parameters)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(3))
def test_64_clocks_are_aligned_to_5_us(seed: int) -> None:
    job = with_clocks(seed, steps=60, gpu={seed: 1.4})
    alignment = align_clocks(read_calls(tables_of(job)), range(RANKS))
    assert alignment.unaligned == [] and len(alignment.clocks) == RANKS
    true = np.linspace(0, 60 * 1.4e6, 100)
    of_reference = job.local(alignment.reference, true)
    errors = [np.abs(c.aligned(job.local(r, true)) - of_reference).max() for r, c in alignment.clocks.items()]
    assert 1 < max(errors) < 5_000
    assert 0 < alignment.residual_ns < 5_000


def only(calls: Calls, mask: np.ndarray) -> Calls:  # type: ignore[type-arg]
    columns = {n: v[mask] for n, v in vars(calls).items() if isinstance(v, np.ndarray)}
    return Calls(**columns, members=calls.members)


def test_ranks_without_common_calls_are_not_aligned() -> None:
    job = with_clocks(7, steps=30)
    calls = read_calls(tables_of(job))
    # Without the groups across hosts, hosts have nothing in common; and of rank 9 too few are left.
    sizes = np.array([len(set(m // 8)) for m in calls.members])
    few = (calls.rank != 9) | (calls.step <= 3)
    alone = align_clocks(only(calls, (sizes[calls.group] == 1) & few), range(RANKS))
    assert sorted(alone.clocks) == list(range(8)) and alone.unaligned == list(range(8, RANKS))
    none = align_clocks(only(calls, np.zeros(len(calls), bool)), range(RANKS))
    assert not none.clocks and none.unaligned == list(range(RANKS)) and none.residual_ns != none.residual_ns


def test_what_ends_apart_is_not_aligned_on() -> None:
    calls = read_calls(tables_of(with_clocks(8, steps=10)))
    calls.together[:] = False
    assert not align_clocks(calls, range(RANKS)).clocks


WRONG = {"slow GPU": {"gpu": 1.5}, "slow host": {"host_ns": 300_000.0}, "slow link": {"link": 2.0}}


def first_of(seed: int, **wrong: object) -> tuple[int, list[tuple[int, str]]]:
    """The rank that is slow, and all ranks with the cause that is told, the slowest first."""
    slow = int(np.random.default_rng(seed).integers(RANKS))
    job = with_clocks(seed, steps=40, **{what: {slow: factor} for what, factor in wrong.items()})
    tables = tables_of(job)
    calls = read_calls(tables)
    hosts = {rank: job.host(rank) for rank in range(RANKS)}
    scores = rank_scores(tables, calls, hosts, align_clocks(calls, range(RANKS)))
    return slow, [(s.rank, s.cause) for s in scores]


def check(seed: int) -> None:
    cause = list(WRONG)[seed % 3]
    slow, found = first_of(seed, **WRONG[cause])
    assert found[0] == (slow, cause), seed
    assert all(not other for _, other in found[1:]), seed
    slow, found = first_of(seed, gpu=1.1)  # no straggler by the threshold, and still the first
    assert found[0] == (slow, "") and len(found) == RANKS


@pytest.mark.parametrize("seed", range(6))
def test_a_slow_rank_is_first_and_told(seed: int) -> None:
    check(seed)


@pytest.mark.nightly
def test_a_slow_rank_is_first_in_50_of_50() -> None:
    for seed in range(50):
        check(seed)


def test_who_comes_late_is_told_by_clocks() -> None:
    job = with_clocks(3, steps=20, host_ns={17: 400_000.0})
    tables = tables_of(job)
    calls = read_calls(tables)
    hosts = {rank: job.host(rank) for rank in range(RANKS)}
    aligned = rank_scores(tables, calls, hosts, align_clocks(calls, range(RANKS)))[0]
    assert aligned.rank == 17 and aligned.last > 0.9 and 300_000 < aligned.late_ns < 500_000
    without = rank_scores(tables, calls, hosts)[0]
    assert without.rank == 17 and without.late_ns != without.late_ns


def test_a_sound_job_has_no_straggler() -> None:
    _, found = first_of(11)
    assert {cause for _, cause in found} == {""}


def test_a_slow_host_is_told_from_a_slow_rank_on_it() -> None:
    job = GeneratedJob(ranks=16, per_host=4, steps=20, gpu=dict.fromkeys(range(8, 12), 1.5) | {1: 1.5}, seed=3)
    tables = tables_of(job)
    ranks = rank_scores(tables, read_calls(tables), {r: job.host(r) for r in range(16)})
    first, *others = host_scores(ranks)
    assert (first.host, first.ranks, first.slow, first.cause) == ("node002", 4, 4, "slow GPU") and first.gpu < 0.7
    assert first.late_ns != first.late_ns  # no clocks
    assert {h.host: (h.slow, h.cause) for h in others} == {"node000": (1, ""), "node001": (0, ""), "node003": (0, "")}
    assert all(h.gpu > 0.9 for h in others)
    assert host_scores([]) == []


def test_pieces_of_two_lengths_are_no_change() -> None:
    random = np.random.default_rng(2)
    longest = (1e8 * (1 + 0.02 * random.standard_normal(300))).astype(np.int64)
    assert step_changes(np.arange(300), longest) == []


@pytest.mark.nightly
@pytest.mark.parametrize("noise", ["normal", "heavy", "spikes", "dependent"])
def test_false_alarms(noise: str) -> None:
    """Of 100 series without a change; numbers of docs/job.md."""
    random, n, found = np.random.default_rng(1), 600, 0
    for _ in range(100):
        values = {
            "normal": lambda: 0.02 * random.standard_normal(n),
            "heavy": lambda: 0.02 * random.standard_t(2, n),
            "spikes": lambda: 0.01 * random.standard_normal(n) + np.log(3) * (random.random(n) < 0.05),
            "dependent": lambda: 0.02 * dependent(random, n),
        }[noise]()
        found += bool(step_changes(np.arange(n), (1e8 * np.exp(values)).astype(np.int64)))
    assert found <= (15 if noise == "dependent" else 5)


def dependent(random: np.random.Generator, n: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Each 0.7 of the one before, and new."""
    out = random.standard_normal(n)
    for i in range(1, n):
        out[i] += 0.7 * out[i - 1]
    return out


def test_change_of_step_time() -> None:
    random = np.random.default_rng(1)
    longest = (1e6 * (1 + 0.02 * random.random(5000))).astype(np.int64)
    assert step_changes(np.arange(5000), longest) == []
    longest[3000:] = longest[3000:] * 13 // 10
    (change,) = step_changes(np.arange(5000), longest)
    assert abs(change[0] - 3000) <= 25 and change[2] / change[1] == pytest.approx(1.3, rel=0.01)
    assert step_changes(np.zeros(0, np.int64), np.zeros(0, np.int64)) == []
