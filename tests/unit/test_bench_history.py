"""A folder of results by commit: series, steps, and what is not one series."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench_rows import ENVIRONMENT, failed, measurement

from cuptiprof.bench import read_history
from cuptiprof.bench.results.history import file_of_run
from cuptiprof.bench.results.row import Row
from cuptiprof.bench.results.store import ResultsWriter
from cuptiprof.errors import BenchError, ResultError

DAY = 86_400
BEGIN = 1_700_000_000


def commit_of(day: int) -> str:
    return f"{day:08x}" + "0" * 32


def add_run(folder: Path, day: int, times: dict[str, float], *, name: str = "", **environment: Any) -> None:
    """A run of one commit a day, of points by name."""
    given = {
        **ENVIRONMENT,
        "commit": commit_of(day),
        "commit_time": BEGIN + day * DAY,
        "time": BEGIN + 400 * DAY,
        "changed": False,
    }
    given.update(environment)
    with ResultsWriter(folder / f"{name or day}.jsonl", given) as writer:
        for point, ns in times.items():
            writer.add(Row("gemm", {"n": point}, measurement(ns, noise=0.0, n=20, environment=given), source="s"))


def fill(folder: Path, days: range, factor: float = 1.0, seed: int = 0, **environment: Any) -> None:
    rng = np.random.default_rng(seed)
    for day in days:
        noise = rng.normal(0, 0.01, 2)
        add_run(folder, day, {"a": 1000 * factor * np.exp(noise[0]), "b": 5000 * np.exp(noise[1])}, **environment)


def test_a_step_is_found_at_its_commit(tmp_path: Path) -> None:
    fill(tmp_path, range(15))
    fill(tmp_path, range(15, 30), 1.05, seed=1)
    history = read_history(tmp_path)
    a, b = history.trends
    assert [len(s.readings) for s in a.segments] == [15, 15] and len(b.segments) == 1
    assert a.segments[1].change == pytest.approx(0.05, abs=0.01) and a.segments[1].readings[0].commit == commit_of(15)
    rows = history.report().rows
    assert [(r["n"], r["commit"], r["runs"]) for r in rows] == [
        ("a", "0" * 12, 15),
        ("a", "0000000f0000", 15),
        ("b", "0" * 12, 30),
    ]
    assert [r["since"] for r in rows] == ["2023-11-14", "2023-11-29", "2023-11-14"]
    assert rows[0]["change_percent"] is None and rows[1]["change_percent"] == pytest.approx(5, abs=1)
    text = str(history)
    assert "+5." in text or "+4." in text
    assert "points: 2, results: 60, steps: 1" in text and "SIMULATED" in text
    assert history.to_pandas()["p_value"].notna().tolist() == [False, True, False]


def test_runs_are_in_the_order_of_their_commits(tmp_path: Path) -> None:
    for day in (3, 1, 2):
        add_run(tmp_path, day, {"a": 1000.0 + day}, time=BEGIN + (900 - day) * DAY)
    add_run(tmp_path, 2, {"a": 1007.0}, name="again", time=BEGIN + 999 * DAY)
    add_run(tmp_path, 9, {"a": 1009.0}, name="no-commit", commit="", commit_time=0, time=BEGIN + 8 * DAY)
    (trend,) = read_history(tmp_path).trends
    assert [int(r.commit[:8] or "0", 16) for r in trend.of.readings] == [1, 2, 2, 3, 0]
    assert trend.of.readings[2].ns == pytest.approx(1007, rel=0.01) and trend.of.readings[-1].label == "-"


@pytest.mark.parametrize("other", [{"chip": "A100"}, {"driver_version": 12040}, {"simulated": False}])
def test_another_gpu_or_driver_is_another_series(tmp_path: Path, other: dict[str, Any]) -> None:
    fill(tmp_path, range(15))
    fill(tmp_path, range(15, 30), 2.0, **other)
    history = read_history(tmp_path)
    assert len(history.trends) == 4 and all(len(t.segments) == 1 for t in history.trends)
    assert "4 series: runs on another GPU or driver" in str(history)


def test_another_strategy_is_another_series_and_a_library_is_said(tmp_path: Path) -> None:
    fill(tmp_path, range(12), torch_version="2.8")
    fill(tmp_path, range(12, 24), 1.1, torch_version="2.9")
    given = {**ENVIRONMENT, "commit": "f" * 40}
    with ResultsWriter(tmp_path / "event.jsonl", given) as writer:
        writer.add(Row("gemm", {"n": "a"}, measurement(1.0, strategy="event", environment=given)))
    trends = read_history(tmp_path).trends
    assert [(t.of.conditions["strategy"], len(t.of.readings)) for t in trends] == [
        ("kernel", 24),
        ("kernel", 24),
        ("event", 1),
    ]
    assert trends[0].segments[1].with_it == ("torch",)
    assert "gemm n=a: too few runs (1) to tell a step from chance" in str(read_history(tmp_path))


def test_a_step_between_runs_of_one_commit_is_not_by_the_commit(tmp_path: Path) -> None:
    for i in range(24):
        add_run(tmp_path, 5, {"a": 1000.0 + i % 3 + 100 * (i >= 12)}, name=f"{i:02}", time=BEGIN + i * DAY)
    (trend,) = read_history(tmp_path).trends
    assert trend.segments[1].with_it == ("the commit is the same",)


def test_small_steps_are_none(tmp_path: Path) -> None:
    for day in range(30):
        add_run(tmp_path, day, {"a": 1000.0 * (1.006 if day >= 10 else 1.0) * (1.04 if day >= 20 else 1.0) + day % 2})
    (trend,) = read_history(tmp_path).trends
    assert [len(s.readings) for s in trend.segments] == [20, 10]
    (fine,) = read_history(tmp_path, threshold=0.001).trends
    assert [len(s.readings) for s in fine.segments] == [10, 10, 10]


def test_hostile_folders(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match=r"cannot read"):
        read_history(tmp_path / "none")
    with pytest.raises(ResultError, match=r"has no results"):
        read_history(tmp_path)
    (tmp_path / "bad.jsonl").write_text("<script>")
    (tmp_path / "notes.txt").write_text("not looked at")
    (tmp_path / "folder.jsonl").mkdir()
    bad = "\x1b[31m<script>"
    add_run(tmp_path, 1, {bad: 1000.0}, chip=bad, driver_version={"a": [bad]}, commit=bad, commit_time="x", time=1e300)
    add_run(tmp_path, 2, {"a": 1000.0}, commit=None, commit_time=-5, time=True)
    with ResultsWriter(tmp_path / "failed.jsonl", ENVIRONMENT) as writer:
        writer.add(failed())
    history = read_history(tmp_path)
    assert [t.of.readings[0].date for t in history.trends] == ["-", "-"]
    text = history.report().to("text")
    assert "\x1b" not in text and "bad.jsonl, line 1: not JSON" in text and "folder.jsonl" in text
    assert "<script>" not in history.report().to("markdown")
    history.plot(tmp_path / "p.svg")
    assert "<script>" not in (tmp_path / "p.svg").read_text()


def test_the_picture_shows_steps(tmp_path: Path) -> None:
    fill(tmp_path, range(15))
    fill(tmp_path, range(15, 30), 1.1, seed=1)
    read_history(tmp_path).plot(tmp_path / "p.svg")
    shown = ["".join(t.itertext()) for t in ET.parse(tmp_path / "p.svg").iter("{http://www.w3.org/2000/svg}text")]
    assert {"gemm n=a", "gemm n=b", "time (us), not from 0", "H100 (simulated)"} <= set(shown)
    assert len([t for t in shown if t.startswith("+") and "% at 0000000f0000" in t]) == 1
    for i in range(17):
        add_run(tmp_path, 50, {f"p{i}": 1.0}, name=f"p{i}")
    with pytest.raises(BenchError, match=r"19 series are too many"):
        read_history(tmp_path).plot(tmp_path / "q.svg")


def test_a_run_has_its_own_file() -> None:
    path = file_of_run("h", {"time": BEGIN, "commit": "c0ffee" + "0" * 34, "changed": True})
    assert path.parent == Path("h") and path.name.startswith("20231114T221320-c0ffee000000-changed-")
    hostile = file_of_run("h", {"time": "x", "commit": "../../etc/passwd"})
    assert hostile.parent == Path("h") and ".." not in hostile.name


def test_the_newest_runs_of_a_long_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuptiprof.bench.results.history.MAX_RUNS", 10)
    fill(tmp_path, range(12))
    history = read_history(tmp_path)
    assert [len(t.of.readings) for t in history.trends] == [10, 10]
    assert "gemm n=a: its 2 oldest runs are left out" in history.notes
