"""Questions to several cases that give several numbers each, within a limit of time for all."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.common import in_turn, ratio, significant, summary

Row = dict[str, float]
Case = Callable[[], Row]


class Budget:
    """Rounds and seconds for some questions: each gets its share of the time that is left."""

    def __init__(self, rounds: int, seconds: float, questions: int) -> None:
        self.rounds, self._until, self._left = rounds, time.monotonic() + seconds, questions

    def share(self) -> float:
        """Seconds for the next question; some, however late it is."""
        left = max(self._until - time.monotonic(), 0.1)
        share = left / max(self._left, 1)
        self._left -= 1
        return share


def rounds_of(cases: Mapping[str, Case], budget: Budget, base: str, value: str, unit_ns: float) -> dict[str, Any]:
    """Every number of every case, measured in turn, and `value`, which is in units of `unit_ns`, as a ratio to that of `base`.

    A number that is the same in each round stands alone.
    """

    def timed(case: Case) -> Case:
        def run() -> Row:
            row = case()
            return {"ns": row[value] * unit_ns, **row}

        return run

    found = in_turn({name: timed(case) for name, case in cases.items()}, budget.rounds, seconds=budget.share())
    out: dict[str, Any] = {}
    for name in cases:
        reported = found[name].reported
        out[name] = {
            key: significant(float(v[0])) if (v == v[0]).all() else summary(v) for key, v in reported.items()
        }  # fmt: skip
        if name != base:
            out[name][f"{value} to {base}"] = ratio(found.verdict(name, base))
    return out
