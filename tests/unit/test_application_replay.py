"""Application replay: runs of one program, each with some of the counters, made into one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from metric_results import GEMM, NAN, counted, launch, values
from report_results import make_result

from cuptiprof.cli import application_runs, make_parser
from cuptiprof.counters.application_merge import merge_application_runs
from cuptiprof.counters.application_replay import ApplicationPlan
from cuptiprof.data.result import Result
from cuptiprof.errors import CuptiprofError, MetricError, ResultError


def run(metric: str, launches: list[tuple[str, int, float]], losses: Any = None, **more: Any) -> Result:
    """A run of a program that launched (name, grid, value of the metric) in this order."""
    ranges = [launch(i, i + 100, name, grid_x=grid, **more) for i, (name, grid, _) in enumerate(launches, 1)]
    rows = [v for i, (_, _, value) in enumerate(launches, 1) for v in values(i, **{metric: value})]
    made = counted(ranges, rows, metrics=[{"name": metric}], passes=1, groups=[[metric]])
    return Result(made.tables, made.metadata, losses)


def column(result: Result, metric: str) -> list[float | None]:
    return [None if np.isnan(v) else v for v in result.counters[metric].tolist()]


def test_launches_are_paired_in_their_order() -> None:
    first = run("ipc", [("b", 1, 1.0), ("a", 1, 2.0), ("b", 1, 3.0), ("b", 2, 4.0)])
    second = run("sm__x.sum", [("b", 2, 40.0), ("b", 1, 10.0), ("b", 1, 30.0), ("a", 1, 20.0)])
    merged = merge_application_runs([first, second])
    assert column(merged, "ipc") == [1, 2, 3, 4] and column(merged, "sm__x.sum") == [10, 20, 30, 40]
    assert merged.metric_ranges["passes"].tolist() == [6] * 4 and set(merged.metric_ranges["strategy"]) == {5}
    plan = merged.metadata["counters"]
    assert plan["strategy"] == "application" and plan["passes"] == 2 and plan["groups"] == [["ipc"], ["sm__x.sum"]]
    assert [m["name"] for m in plan["metrics"]] == ["ipc", "sm__x.sum"] and plan["notes"] == [
        "clocks were locked to base"
    ]
    assert len(merged.kernels) == len(first.kernels)
    groups = dict(zip(merged.metrics["metric"].tolist(), merged.metrics["group"].tolist(), strict=True))
    assert groups == {"ipc": 1, "sm__x.sum": 2}
    assert first.metric_ranges["strategy"].tolist() == [1] * 4  # the runs themselves stay as they are


def test_launches_that_differ_are_counted() -> None:
    first = run("ipc", [("a", 1, 1.0), ("a", 1, 2.0), ("gone", 1, 3.0)])
    second = run("l2", [("a", 1, 10.0), ("new", 1, 50.0)])
    merged = merge_application_runs([first, second])
    assert column(merged, "l2") == [10.0, None, None]
    (note,) = merged.metadata["counters"]["notes"][1:]
    assert note.startswith("run 2 of the program differed: 2 of 3 launches of run 1") and "1 of its own 2" in note
    assert merged.metric_ranges["passes"].tolist() == [6, 3, 3]
    assert note in "\n".join(merged.report("metrics").header)


def test_what_must_agree_can_be_chosen() -> None:
    first = run("ipc", [("a", 1, 1.0), ("a", 2, 2.0)])
    second = run("l2", [("a", 2, 20.0), ("a", 1, 10.0)])
    assert column(merge_application_runs([first, second]), "l2") == [10, 20]
    assert column(merge_application_runs([first, second], match_by="name"), "l2") == [20, 10]
    moved = run("l2", [("a", 1, 10.0), ("a", 2, 20.0)], stream=99)
    assert column(merge_application_runs([first, moved]), "l2") == [10, 20]
    assert "l2" not in merge_application_runs([first, moved], match_by="all").counters
    with pytest.raises(ResultError, match="grid"):
        merge_application_runs([first], match_by="colour")
    with pytest.raises(ResultError):
        merge_application_runs([])


def test_the_earlier_of_two_values_counts_and_runs_may_be_empty() -> None:
    first = run("ipc", [("a", 1, 1.0)])
    assert column(merge_application_runs([first, run("ipc", [("a", 1, 9.0)])]), "ipc") == [1.0]
    empty = make_result({})
    assert column(merge_application_runs([first, empty]), "ipc") == [1.0]
    assert len(merge_application_runs([empty, first]).metrics) == 0
    assert "1 none in run 1" in merge_application_runs([empty, first]).metadata["counters"]["notes"][-1]


def test_losses_of_later_runs_are_said() -> None:
    clean = run("ipc", [("a", 1, 1.0)])
    lossy = run("l2", [("a", 1, 1.0)], {"pool_exhausted": 3})
    assert any("pool_exhausted" in n for n in merge_application_runs([clean, lossy]).metadata["counters"]["notes"])
    assert not any("pool" in n for n in merge_application_runs([clean, clean]).metadata["counters"]["notes"])


def test_many_launches() -> None:
    n = 5_000
    random = np.random.default_rng(5)
    launches = [(f"k{i % 40}", int(i % 3) + 1, float(i)) for i in range(n)]
    first = run("ipc", launches)
    order = random.permutation(n)  # kernels may interleave otherwise, but each kind keeps its own order
    kinds: dict[tuple[str, int], list[float]] = {}
    for name, grid, value in launches:
        kinds.setdefault((name, grid), []).append(value)
    taken = dict.fromkeys(kinds, 0)
    shuffled = []
    for i in order.tolist():
        name, grid, _ = launches[i]
        shuffled.append((name, grid, kinds[name, grid][taken[name, grid]]))
        taken[name, grid] += 1
    merged = merge_application_runs([first, run("again", shuffled)])
    assert np.array_equal(merged.counters["ipc"], merged.counters["again"])


@dataclass(frozen=True)
class Ratio:
    """A metric over two inputs, as the catalogue has them."""

    name: str = "ratio"
    unit: str = "%"
    description: str = "x over y"
    expression: str = "100 * x / y"
    status: str = "derived"
    kind: str = "percent"
    category: str = ""
    inputs: tuple[str, ...] = ("x", "y")

    def value(self, inputs: Mapping[str, Any]) -> Any:
        return 100 * inputs["x"] / inputs["y"]


@dataclass(frozen=True)
class Plain(Ratio):
    name: str = "plain"
    inputs: tuple[str, ...] = ("y",)

    def value(self, inputs: Mapping[str, Any]) -> Any:
        return np.asarray(inputs["y"])


def test_metrics_are_computed_from_the_inputs_of_all_runs() -> None:
    first, second = run("x", [("a", 1, 1.0), ("b", 1, 3.0)]), run("y", [("a", 1, 4.0), ("b", 1, NAN)])
    merged = merge_application_runs([first, second], metrics=[Ratio(), Plain()])
    assert list(merged.counters) == ["ratio", "plain"] and column(merged, "ratio") == [25.0, None]
    rows = {row["metric"]: row for row in merged.metrics_table(wide=False).rows}
    assert (rows["ratio"]["group"], rows["ratio"]["from_means"], rows["ratio"]["unit"]) == (0, "yes", "%")
    assert (rows["plain"]["group"], rows["plain"]["from_means"]) == (2, "no")
    assert merged.metadata["counters"]["metrics"][0]["inputs"] == ["x", "y"]


def parsed(*words: str) -> argparse.Namespace:
    return make_parser().parse_args(["run", *words])


def test_children_get_the_same_filters() -> None:
    arguments = parsed("--device", "sim:A100", "--kernels", "::gemm:1", "--metrics", "ipc", "-c", "5", "--replay-mode",
                       "application", "-o", "out", "train.py", "--lr", "-3")  # fmt: skip
    command = application_runs.child_command(arguments, ("a.sum", "b.avg"), Path("/t/100%.cuptiprof"))
    child = parsed(*command[command.index("run") + 1 :])
    assert child.metrics == ["a.sum,b.avg"] and child.replay_mode == "kernel" and child.quiet
    assert child.output == "/t/100%%.cuptiprof" and child.script == "train.py" and child.args == ["--lr", "-3"]
    for same in ("device", "kernels", "launch_count", "budget", "keep", "filter_mode", "module", "timeout"):
        assert getattr(child, same) == getattr(arguments, same), same
    module = application_runs.child_command(parsed("--metrics", "ipc", "-m", "a.b", "x"), ("a.sum",), Path("p"))
    assert module[-3:] == ["-m", "a.b", "x"]


def replaying(monkeypatch: pytest.MonkeyPatch, codes: list[int], runs: list[Result | None]) -> list[list[str]]:
    """Replaces the child processes: each leaves the given run behind and ends with the given status."""
    commands: list[list[str]] = []

    def child(command: list[str], *, quiet: bool) -> int:
        i = len(commands)
        commands.append(command)
        assert quiet is (i > 0)
        made = runs[i]
        if made is not None:
            made.save(command[command.index("--output") + 1])
        return codes[i]

    monkeypatch.setattr(application_runs, "_run", child)
    return commands


def test_one_run_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = replaying(monkeypatch, [0, 3], [run("x", [(GEMM, 1, 1.0)]), run("y", [(GEMM, 1, 4.0)])])
    plan = ApplicationPlan((Ratio(),), (("x",), ("y",)))
    result, status = application_runs.run_script_again(parsed("--metrics", "ratio", "s.py"), plan)
    assert status == 0 and column(result, "ratio") == [25.0]
    assert [c[c.index("--metrics") + 1] for c in commands] == ["x", "y"]
    assert any("status 3, run 1 with 0" in note for note in result.metadata["counters"]["notes"])
    assert "the script runs 2 times" in plan.text() and "ratio = 100 * x / y" in plan.text()


def test_a_run_that_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    replaying(monkeypatch, [0, 1], [run("x", [(GEMM, 1, 1.0)]), None])
    plan = ApplicationPlan((Ratio(),), (("x",), ("y",)))
    with pytest.raises(CuptiprofError, match="run 2 of 2 left no profile"):
        application_runs.run_script_again(parsed("--metrics", "ratio", "s.py"), plan)


def test_real_children_say_how_they_end(tmp_path: Path) -> None:
    out = tmp_path / "out.py"
    out.write_text(
        "import sys, os, signal\nif sys.argv[1] == 'kill': os.kill(os.getpid(), signal.SIGTERM)\nsys.exit(7)"
    )
    assert application_runs._run([sys.executable, str(out), "exit"], quiet=True) == 7
    assert application_runs._run([sys.executable, str(out), "kill"], quiet=False) == 128 + 15


def test_runs_are_planned_with_nvidias_planner() -> None:
    arguments = parsed("--device", "sim", "--metrics", "ipc,l2_tex_hit_rate", "--section", "Occupancy", "--replay-mode",
                       "application", "s.py")  # fmt: skip
    plan = application_runs.plan_script_runs(arguments)
    names = [metric.name for metric in plan.metrics]
    assert names[:2] == ["ipc", "l2_tex_hit_rate"] and "sm__warps_active.avg.pct_of_peak_sustained_active" in names
    read = [name for group in plan.groups for name in group]
    assert len(read) == len(set(read)) and set(read) == {name for metric in plan.metrics for name in metric.inputs}
    assert len(plan.groups) >= 2  # the L2 hit rate needs two passes on H100
    with pytest.raises(MetricError):
        application_runs.plan_script_runs(parsed("--device", "sim", "--replay-mode", "application", "s.py"))
