"""Our analyses find in traces what Holistic Trace Analysis 0.5.0 finds: times to the nanosecond, shares as it rounds them.

``tests/data/ranks/hta.json`` says what that is; where the two differ by design, this file says so.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import pytest
from conftest import DATA, trace_path

import cuptiprof
from cuptiprof.data.result import Result
from cuptiprof.report.model import Report

RANKS = DATA / "ranks"
HTA: dict[str, dict[str, list[Any]]] = json.loads((RANKS / "hta.json").read_text())


@lru_cache(maxsize=2)
def results(trace: str) -> tuple[Result, ...]:
    paths = sorted(RANKS.glob("rank*.json.gz")) if trace == "ranks" else [trace_path(trace)]
    return tuple(cuptiprof.open(path) for path in paths)


def report(trace: str, view: str) -> Report:
    first, *others = results(trace)
    return first.report(view, ranks=others)


def share(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def of_hta(trace: str, table: str) -> list[Any]:
    """Its rows; none where it says that there are none by an exception."""
    return [row for row in HTA[trace][table] if isinstance(row, list)]


@pytest.mark.parametrize("trace", HTA)
def test_temporal(trace: str) -> None:
    kinds = ("idle", "compute", "non_compute")
    found = [
        [
            row["rank"],
            *(row[f"{kind}_ns"] for kind in (*kinds, "kernel")),
            *(share(row[f"{kind}_pct"], 2) for kind in kinds),
        ]
        for row in report(trace, "temporal").rows
    ]
    assert found == of_hta(trace, "temporal")


@pytest.mark.parametrize("trace", HTA)
def test_kernel_types(trace: str) -> None:
    rows = report(trace, "kernel-types").rows
    assert [[row["kernel_type"], row["sum_ns"], share(row["percentage"], 1)] for row in rows] == of_hta(trace, "types")


@pytest.mark.parametrize("trace", HTA)
def test_overlap(trace: str) -> None:
    found = [[row["rank"], share(row["comp_comm_overlap_pct"], 2)] for row in report(trace, "overlap").rows]
    expected = of_hta(trace, "overlap")
    assert found == (expected if of_hta(trace, "temporal") else [])  # where nothing ran, HTA has a row without a number


@pytest.mark.parametrize("trace", HTA)
def test_idle(trace: str) -> None:
    found = [
        [row["rank"], row["stream"], row["idle_category"], row["idle_ns"], share(row["idle_ratio"], 2)]
        for row in report(trace, "idle").rows
    ]
    assert found == of_hta(trace, "idle")
