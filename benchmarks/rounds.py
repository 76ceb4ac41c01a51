"""Interleaved rounds of cases that give several numbers each, within a limit of time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.common import interleaved, spread

Row = dict[str, float]
Case = Callable[[], Row]


class Rounds:
    """How many rounds each question gets: the number asked for, fewer (at least two) when the time for all is short."""

    def __init__(self, most: int, seconds: float, questions: int) -> None:
        self._most, self._until, self._left = most, time.monotonic() + seconds, questions

    def run(self, cases: Mapping[str, Callable[[], float]]) -> dict[str, list[float]]:
        """Interleaved rounds within this question's share of the time that is left."""
        now = time.monotonic()
        until = now + (self._until - now) / max(self._left, 1)
        self._left -= 1
        got: dict[str, list[float]] = {name: [] for name in cases}
        for done in range(self._most):
            if done >= 2 and time.monotonic() > until:
                break
            for name, values in interleaved(cases, 1).items():
                got[name] += values
        return got


def rounds_of(cases: Mapping[str, Case], rounds: Rounds, base: str, value: str) -> dict[str, Any]:
    """Every number of every case with its spread, and `value` as a ratio to that of `base` in the same round."""
    rows: dict[str, list[Row]] = {name: [] for name in cases}

    def keep(name: str, case: Case) -> Callable[[], float]:
        def run() -> float:
            rows[name].append(case())
            return rows[name][-1][value]

        return run

    for case in cases.values():
        case()  # the first of a kind loads and plans
    got = rounds.run({name: keep(name, case) for name, case in cases.items()})
    return {
        name: {
            **{key: spread([row[key] for row in rows[name]]) for key in rows[name][0]},
            f"{value} to {base}": spread([a / b for a, b in zip(got[name], got[base], strict=True)]),
        }
        for name in cases
    }
