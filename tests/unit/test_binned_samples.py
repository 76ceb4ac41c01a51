"""Samples in stretches of a given length: by hand, and against a loop over samples."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from metric_results import GEMM, NAN, plan, values
from report_results import make_result

from cuptiprof.cli import main
from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError


def sampled(spans: list[tuple[int, int, int]], measured: list[dict[str, float]]) -> Result:
    """Samples (device, start, end); a kernel from 0 to 10,000 ns."""
    rows = [
        {"id": i + 1, "kind": 4, "strategy": 4, "occurrences": 1, "device": device, "start": start, "end": end}
        for i, (device, start, end) in enumerate(spans)
    ]
    each = [value for i, of in enumerate(measured) for value in values(i + 1, **of)]
    kernels = [{"name": GEMM, "start": 0, "end": 10_000}]
    return make_result({"metric_ranges": rows, "metrics": each, "kernels": kernels}, {"counters": plan()})


def test_bins_of_a_given_length_by_hand() -> None:
    spans = [(0, 0, 100), (0, 100, 400), (0, 950, 1_050), (0, 1_050, 1_150), (0, 5_000, 5_010), (1, 20, 40)]
    measured = [
        {"ipc": 1.0, "inst_executed": 5},
        {"ipc": 3.0, "inst_executed": 7},
        {"ipc": 8.0},
        {"ipc": 6.0},
        {"inst_executed": 1},
        {"ipc": 9},
    ]  # type: ignore[dict-item]
    report = sampled(spans, measured).report("samples", bin_ns=1_000)
    keys = ("device_ordinal", "start_ns", "duration_ns", "samples", "ipc", "inst_executed")
    assert [[row[key] for key in keys] for row in report.rows] == [
        [0, 0, 1_050, 3, (1.0 * 100 + 3.0 * 300 + 8.0 * 100) / 500, 12],
        [0, 1_050, 100, 1, 6.0, None],
        [0, 5_000, 10, 1, None, 1],
        [1, 20, 20, 1, 9.0, None],
    ]
    assert "Stretches of 1.0000us" in str(report)
    few = sampled(spans, measured).report("samples", bin_ns=1_000, limit=2)
    assert few.rows == report.rows[:2] and "and 2 more rows" in str(few)
    with pytest.raises(ResultError, match="takes some time"):
        sampled(spans, measured).report("samples", bin_ns=0)


@pytest.mark.parametrize("seed", range(6))
def test_against_a_loop(seed: int) -> None:
    rng = random.Random(seed)
    spans, measured = [], []
    for device in (0, 1):
        now = 0
        while now < 9_000:
            now += rng.randint(0, 200)
            spans.append((device, now, now := now + rng.randint(1, 90)))
            measured.append({"ipc": rng.choice((NAN, rng.random())), "inst_executed": float(rng.randint(0, 9))})
    shuffled = list(zip(spans, measured, strict=True))
    rng.shuffle(shuffled)
    width = rng.choice((1, 77, 1_000, 100_000))
    bins: dict[Any, list[Any]] = defaultdict(list)
    for (device, start, end), of in sorted(shuffled, key=lambda pair: pair[0]):
        bins[device, start // width].append((start, end, of))
    rows = sampled([span for span, _ in shuffled], [of for _, of in shuffled]).report("samples", bin_ns=width).rows
    assert len(rows) == len(bins)
    for row, ((device, _), inside) in zip(rows, bins.items(), strict=True):
        assert (row["device_ordinal"], row["start_ns"], row["samples"]) == (device, inside[0][0], len(inside))
        assert row["duration_ns"] == max(end for _, end, _ in inside) - inside[0][0]
        assert row["inst_executed"] == sum(of["inst_executed"] for _, _, of in inside)
        known = [(end - start, of["ipc"]) for start, end, of in inside if of["ipc"] == of["ipc"]]
        mean = sum(t * v for t, v in known) / sum(t for t, _ in known) if known else None
        assert row["ipc"] == (pytest.approx(mean) if known else None)


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run.cuptiprof"
    sampled([(0, i * 100, i * 100 + 100) for i in range(50)], [{"ipc": 1.0}] * 50).save(run)
    assert main(["report", str(run), "--bin", "1us", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["view"] == "samples" and [row["samples"] for row in found["rows"]] == [10] * 5
    with pytest.raises(SystemExit):
        main(["report", str(run), "--bin", "0us"])
    assert "no positive time: write 20us" in capsys.readouterr().err
