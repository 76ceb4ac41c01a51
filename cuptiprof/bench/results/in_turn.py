"""Functions that were measured in turn: what each is against the first, and in the geometric mean of several points."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cuptiprof.bench.results.cycles import in_cycles
from cuptiprof.bench.results.measurement import Measurement
from cuptiprof.bench.results.parts import Float64
from cuptiprof.bench.results.points import params_key
from cuptiprof.bench.results.row import Row
from cuptiprof.errors import BenchError
from cuptiprof.stats.verdict import ALPHA, THRESHOLD, Verdict, judge, judge_pairs


@dataclass(frozen=True)
class Group:
    """Rows of one benchmark that differ in the compared parameter only, in their order; the first is the base.

    Attributes:
        verdicts: name of the value -> what it is against the base; of those that were measured in turn with it.
    """

    parameter: str
    base: Row
    verdicts: Mapping[str, Verdict]

    def verdict(self, row: Row) -> Verdict | None:
        """None of the base, and of a row that could not be measured in turn with it."""
        return self.verdicts.get(str(row.params[self.parameter]))


def groups_of(rows: Sequence[Row]) -> dict[tuple[str, str], Group]:
    """Key of each row that is one of several to compare -> its group."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.compare in row.params:
            others = {n: v for n, v in row.params.items() if n != row.compare}
            found.setdefault((row.benchmark, params_key(others)), []).append(row)
    out: dict[tuple[str, str], Group] = {}
    for members in found.values():
        base, *others_ = members
        verdicts = {}
        for row in others_:
            if base.measurement is None or row.measurement is None:
                continue
            try:
                verdicts[str(row.params[row.compare])] = judge_in_turn(base.measurement, row.measurement)
            except (BenchError, ValueError):  # a time of 0, of a file or of a clock that is too coarse
                continue
        group = Group(base.compare, base, verdicts)
        out.update((row.key, group) for row in members)
    return out


def summary_lines(rows: Sequence[Row], groups: Mapping[tuple[str, str], Group]) -> list[str]:
    """For each compared value a sentence: its speed-up in the geometric mean over the points, and how many verdicts of each kind."""
    found: dict[tuple[str, str, str], list[Verdict]] = {}
    for row in rows:
        group = groups.get(row.key)
        if group is None or (verdict := group.verdict(row)) is None:
            continue
        base = str(group.base.params[group.parameter])
        found.setdefault((row.benchmark, str(row.params[group.parameter]), base), []).append(verdict)
    several = len({benchmark for benchmark, _, _ in found}) > 1
    out = []
    for (benchmark, value, base), verdicts in found.items():
        mean = math.exp(-sum(math.log(v.ratio) for v in verdicts) / len(verdicts))
        kinds = ", ".join(f"{n} {kind}" for kind, n in Counter(v.kind.value for v in verdicts).items())
        points = f"geometric mean of {len(verdicts)} points" if len(verdicts) > 1 else "1 point"
        out.append(
            f"{f'{benchmark}: ' if several else ''}{value} against {base}: speed-up x{mean:.3f} ({points}: {kinds})"
        )
    return out


def judge_in_turn(
    base: Measurement,
    new: Measurement,
    threshold: float = THRESHOLD,
    alpha: float = ALPHA,
    *,
    cycles: bool = False,
) -> Verdict:
    """The verdict on two measurements whose samples were taken in turn, A B B A or B A A B; see ``judge_pairs``.

    A round with a discarded sample is left out whole.

    Args:
        cycles: judge time x SM clock.

    Raises:
        BenchError: a sample that is 0, of a function too short for its clock; a clock that is not known.
    """
    if cycles:
        base, new = in_cycles(base), in_cycles(new)
    for m in (base, new):
        if m.samples.min() <= 0:
            raise BenchError(f"{m.name!r} takes no time that its clock shows", hint="let it do more in one call")
    rounds, tick = _whole_rounds(base, new), (base.known_tick, new.known_tick)
    if not len(rounds):
        return judge(base.samples, new.samples, threshold=threshold, alpha=alpha, tick=tick)
    return judge_pairs(_at(base, rounds), _at(new, rounds), threshold=threshold, alpha=alpha, tick=tick)


def _whole_rounds(base: Measurement, new: Measurement) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Places of samples whose four, A B B A or B A A B, are all in use."""
    both = np.intersect1d(base.places(), new.places())
    complete = np.intersect1d(both[both % 2 == 0], both[both % 2 == 1] - 1)
    return np.sort(np.concatenate([complete, complete + 1]))


def _at(m: Measurement, places: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Float64:
    return m.samples[np.searchsorted(m.places(), places)]
