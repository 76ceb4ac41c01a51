"""GPUs over time: by hand, and against looking at every instant."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from report_results import config, make_result

A100 = {
    "device": 0,
    "name": "A100",
    "num_multiprocessors": 108,
    "compute_capability_major": 8,
    "compute_capability_minor": 0,
}


def kernel(start: int, end: int, **more: Any) -> dict[str, Any]:
    return {"name": "compute", "start": start, "end": end, "stream": 7, **more}


def test_buckets_by_hand() -> None:
    # 2,500 us: buckets of 100 us, 25 of them; the last microsecond is the last one's.
    tables = {
        "launch_configs": [config((54, 1, 1)), config((216, 1, 1))],
        "kernels": [kernel(0, 50_000, config=0), kernel(25_000, 150_000, config=1, stream=9), kernel(2_499_000, 2_501_000, device=1)],
        "devices": [A100],
    }  # fmt: skip
    rows = make_result(tables).report("gpu-series").rows
    assert len(rows) == 50 and [row["device"] for row in rows] == [0] * 25 + [1] * 25
    assert [(row["start_ns"], row["duration_ns"]) for row in rows[23:25]] == [
        (2_300_000, 100_000),
        (2_400_000, 101_000),
    ]
    assert [row["utilisation_pct"] for row in rows[:3]] == [100, 50, 0]
    assert [row["sm_efficiency_pct"] for row in rows[:3]] == pytest.approx([25 * 0.5 + 75, 50, 0])
    assert rows[-1]["utilisation_pct"] == pytest.approx(100 * 2 / 101) and rows[-1]["sm_efficiency_pct"] is None


@pytest.mark.parametrize("length", [90, 99_000, 101_000])
def test_there_are_at_most_a_hundred(length: int) -> None:
    rows = make_result({"kernels": [kernel(7, 7 + length)]}).report("gpu-series").rows
    assert len(rows) == {90: 1, 99_000: 99, 101_000: 10}[length]
    assert sum(row["duration_ns"] for row in rows) == length and {row["utilisation_pct"] for row in rows} == {100}


@pytest.mark.parametrize("seed", range(5))
def test_against_every_instant(seed: int) -> None:
    rng = np.random.default_rng(seed)
    blocks = [27, 54, 81, 200]
    kernels = []
    for _ in range(30):
        start = int(rng.integers(0, 40_000))
        kernels.append(
            kernel(
                start,
                start + int(rng.integers(0, 6_000)),
                config=int(rng.integers(0, 4)),
                stream=int(rng.integers(0, 3)),
            )
        )
    tables = {"kernels": kernels, "launch_configs": [config((n, 1, 1)) for n in blocks], "devices": [A100]}
    filled = np.zeros(60_000)
    for k in kernels:
        filled[k["start"] : k["end"]] += blocks[k["config"]] / 108
    origin = min(k["start"] for k in kernels)
    rows = make_result(tables).report("gpu-series").rows
    for row in rows:
        part = filled[origin + row["start_ns"] : origin + row["start_ns"] + row["duration_ns"]]
        assert row["utilisation_pct"] == pytest.approx(100 * (part > 0).mean())
        assert row["sm_efficiency_pct"] == pytest.approx(100 * np.minimum(part, 1).mean())
    (gpu,) = make_result(tables).report("gpu").rows
    assert gpu["utilisation_pct"] == pytest.approx(
        np.average([r["utilisation_pct"] for r in rows], weights=[r["duration_ns"] for r in rows])
    )
