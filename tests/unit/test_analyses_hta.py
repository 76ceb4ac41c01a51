"""Our analyses find in traces what Holistic Trace Analysis 0.5.0 finds: times to the nanosecond, shares as it rounds them.

``tests/data/analyses/hta.json`` says what that is; where the two differ by design, this file says so.
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from conftest import DATA, trace_path

import cuptiprof
from cuptiprof.data.result import Result
from cuptiprof.job.engines import open_tables
from cuptiprof.job.fleet import gpu_time
from cuptiprof.report.model import Report

HTA: dict[str, dict[str, list[Any]]] = json.loads((DATA / "analyses" / "hta.json").read_text())


@lru_cache(maxsize=2)
def results(trace: str) -> tuple[Result, ...]:
    paths = [DATA / "ranks" / f"{name}.json.gz" for name in trace.split("+")]
    return tuple(cuptiprof.open(path if path.exists() else trace_path(trace)) for path in paths)


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


def test_the_view_of_a_job(tmp_path: Path) -> None:
    """Computation, and the share of communication that it hides, of all ranks by the engine; copies are not in it, so that its idle time is not HTA's."""
    trace = "rank0+rank1"
    for result in results(trace):
        result.save_rank(tmp_path / "job")
    rows = gpu_time(open_tables(cuptiprof.open_job(tmp_path / "job"))).to_pyarrow().to_pylist()
    assert [[r["rank"], r["computation_ns"]] for r in rows] == [[r[0], r[2]] for r in of_hta(trace, "temporal")]
    hidden = [[r["rank"], share(100 * r["overlap_ns"] / r["communication_ns"], 2)] for r in rows]
    assert hidden == of_hta(trace, "overlap")
    with_copies = [r[1] for r in of_hta(trace, "temporal")]
    assert all(0 < idle < r["idle_ns"] for idle, r in zip(with_copies, rows, strict=True))


@pytest.mark.parametrize("trace", HTA)
def test_idle(trace: str) -> None:
    found = [
        [row["rank"], row["stream"], row["idle_category"], row["idle_ns"], share(row["idle_ratio"], 2)]
        for row in report(trace, "idle").rows
    ]
    assert found == of_hta(trace, "idle")


LAUNCHES_OF_HTA = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync")


@pytest.mark.parametrize("trace", HTA)
def test_launches(trace: str) -> None:
    keys = ("rank", "correlation", "cpu_duration_ns", "gpu_duration_ns", "launch_delay_ns")
    rows = [row for row in report(trace, "launches").rows if row["name"] in LAUNCHES_OF_HTA]
    found = sorted(tuple(row[key] for key in keys) for row in rows)
    digest = hashlib.sha256(repr(found).encode()).hexdigest()
    assert [[len(found), *(sum(row[i] for row in found) for i in (2, 3, 4)), digest]] == HTA[trace]["launches"]


STATISTICS = ("count", "mean", "std", "minimum", "p25", "median", "p75", "maximum")


def same(found: list[Any], expected: list[Any]) -> None:
    """Names and numbers of rows, to the ten digits that the file has."""
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        assert [v for v in mine if isinstance(v, str)] == [v for v in theirs if isinstance(v, str)]
        numbers = [[v for v in row if not isinstance(v, str)] for row in (mine, theirs)]
        assert [v is None for v in numbers[0]] == [v is None for v in numbers[1]]
        assert [v for v in numbers[0] if v is not None] == pytest.approx(
            [v for v in numbers[1] if v is not None], rel=1e-9
        )


@pytest.mark.parametrize("trace", HTA)
def test_queue(trace: str) -> None:
    rows = report(trace, "queue").rows
    same([[row[key] for key in ("rank", "stream", *STATISTICS)] for row in rows], of_hta(trace, "queue"))


@pytest.mark.parametrize("trace", HTA)
def test_bandwidth(trace: str) -> None:
    rows = [row for row in report(trace, "bandwidth").rows if row["count"]]
    found = [
        [row["rank"], row["copy_kind"], row["count"],
         *(None if row[f"{key}_bytes_per_s"] is None else row[f"{key}_bytes_per_s"] / 1e9 for key in STATISTICS[1:])]
        for row in rows
    ]  # fmt: skip
    same(sorted(found, key=lambda row: row[:2]), of_hta(trace, "bandwidth"))
