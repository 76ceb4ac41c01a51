"""Two runs compared: what is new and gone, counts and times as the files have them, verdicts, and what cannot be compared."""

from __future__ import annotations

import gzip
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DATA
from report_results import make_result

import cuptiprof
from cuptiprof.analysis.comparison.run_diff import diff_runs
from cuptiprof.analysis.comparison.work_groups import GROUPS
from cuptiprof.cli import main
from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError
from cuptiprof.report.render import FORMATS
from cuptiprof.text.short_names import function_name

RANKS = [str(DATA / "ranks" / f"rank{i}.json.gz") for i in range(2)]


def run_of(times: dict[str, list[int]], *, steps: int = 0, gpu: str = "NVIDIA A100", **metadata: Any) -> Result:
    """Kernels by name with durations in ns, launched in turn in so many steps."""
    kernels, now = [], 1000
    rows = [(name, i, ns) for name, durations in times.items() for i, ns in enumerate(durations)]
    rows.sort(key=lambda row: row[1])
    for n, (name, i, ns) in enumerate(rows):
        step = 1 + i * steps // len(times[name]) if steps else 0
        kernels.append({"name": name, "start": now, "end": now + ns, "correlation_id": n + 1, "step": step,
                        "region": f"train/{name}", "module": f"net.{name}", "operator": f"aten::linear/aten::{name}"})  # fmt: skip
        now += ns + 100
    markers = [{"name": f"ProfilerStep#{i}", "category": "step", "id": i, "start": 1000 + i * (now // max(steps, 1)),
                "end": 1000 + (i + 1) * (now // max(steps, 1))} for i in range(steps)]  # fmt: skip
    devices = [{"device": 0, "name": gpu}] if gpu else []
    return make_result({"kernels": kernels, "markers": markers, "devices": devices}, metadata)


def noisy(ns: float, count: int, seed: int) -> list[int]:
    return np.rint(ns * np.exp(0.01 * np.random.default_rng(seed).normal(size=count))).astype(int).tolist()


@pytest.mark.parametrize(("by", "name"), [("kernel", "{}"), ("region", "train/{}"), ("operator", "aten::{}"), ("module", "net.{}")])  # fmt: skip
def test_what_is_new_gone_and_slower(by: Any, name: str) -> None:
    base = run_of({"gemm": noisy(50_000, 100, 1), "relu": noisy(8_000, 100, 2), "old": [700] * 3}, steps=50)
    new = run_of({"gemm": noisy(50_000, 100, 3), "relu": noisy(8_400, 100, 4), "fused": [900] * 5}, steps=50)
    rows = base.diff(new, by).rows
    assert [row["name"] for row in rows] == [name.format(n) for n in ("relu", "fused", "old", "gemm")]
    relu, fused, old, gemm = rows
    assert [row["status"] for row in rows] == ["both", "new", "gone", "both"]
    assert relu["verdict"] == "SLOWER" and 1.04 < relu["ratio_low"] < 1.05 < relu["ratio_high"] < 1.06
    assert gemm["verdict"] == "SAME"
    assert (old["base_launches"], old["new_launches"], old["base_ns"], old["new_ns"]) == (3, 0, 2100, 0)
    assert (fused["base_launches"], fused["new_launches"], fused["new_ns"]) == (0, 5, 4500)
    assert fused["change_pct"] is None and fused["verdict"] is None and fused["reason"] == "only in the new run"
    whole = sum(row["new_ns"] for row in rows)
    assert relu["new_share_pct"] == pytest.approx(100 * relu["new_ns"] / whole)
    assert relu["change_ns"] == pytest.approx((relu["new_ns"] - relu["base_ns"]) / 50)


def test_steps_of_both_runs() -> None:
    """Of more steps in one run the time of a step is compared, not that of the run; steps pair up in their order."""
    base = run_of({"gemm": noisy(50_000, 100, 1)}, steps=50)
    new = run_of({"gemm": noisy(50_000, 160, 2)}, steps=80)
    report = base.diff(new)
    (gemm,) = report.rows
    assert report.content.facts["steps"] == {"base": 50, "new": 80}
    assert abs(gemm["change_pct"]) < 0.5 and gemm["new_ns"] > 1.5 * gemm["base_ns"] and gemm["verdict"] == "SAME"
    rows = base.diff(new, "step").rows
    assert len(rows) == 80 and Counter(row["status"] for row in rows) == {"both": 50, "new": 30}
    both = next(row for row in rows if row["name"] == "7")
    assert both["base_launches"] == both["new_launches"] == 2


def test_steps_are_judged_as_wholes() -> None:
    base = run_of({"gemm": noisy(50_000, 100, 1)}, steps=50)
    new = run_of({"gemm": noisy(55_000, 100, 2)}, steps=50)
    verdicts = base.diff(new).content.facts["step_verdicts"]
    assert verdicts["gpu"]["verdict"] == "SLOWER" and verdicts["gpu"]["ratio"] == pytest.approx(1.1, abs=0.01)


def test_without_steps_launches_are_judged_by_what_they_do() -> None:
    """A kernel with two grids has two lengths: each is compared with its own kind."""

    def mixed(factor: float, seed: int) -> Result:
        times = np.array(noisy(5_000, 60, seed) + noisy(90_000, 60, seed + 1)) * factor
        order = np.random.default_rng(seed).permutation(120)
        kernels = [{"name": "gemm", "start": int(200_000 * place), "end": int(200_000 * place + times[i]), "config": int(i >= 60),
                    "correlation_id": i + 1} for place, i in enumerate(order.tolist())]  # fmt: skip
        return make_result({"kernels": kernels, "launch_configs": [{"grid_x": 4, "block_x": 128}, {"grid_x": 80, "block_x": 128}]})  # fmt: skip

    (same,) = mixed(1.0, 1).diff(mixed(1.0, 5)).rows
    (slower,) = mixed(1.0, 1).diff(mixed(1.05, 5)).rows
    assert same["verdict"] == "SAME"
    assert slower["verdict"] == "SLOWER" and slower["ratio"] == pytest.approx(1.05, abs=0.005)


def test_launches_of_one_length_are_known_to_the_clock_only() -> None:
    """A recorded time is a multiple of 32 ns; of a file in whole microseconds, of one of those."""
    exact = run_of({"gemm": [20_032] * 50}).diff(run_of({"gemm": [21_024] * 50})).rows[0]
    assert exact["verdict"] == "SLOWER" and exact["ratio_low"] < 1.0495 < exact["ratio_high"]
    tiny = run_of({"gemm": [5_000] * 50}).diff(run_of({"gemm": [6_000] * 50})).rows[0]
    assert tiny["verdict"] == "UNSURE"


def test_too_little_is_not_judged() -> None:
    row = run_of({"gemm": [1000] * 39}).diff(run_of({"gemm": [2000] * 50})).rows[0]
    assert row["verdict"] is None and row["reason"] == "39 and 50 launches that do the same: too few to be judged"
    assert row["change_ns"] == 2000 * 50 - 1000 * 39
    many = {"gemm": [1_000_000] * 50, "tiny": [500] * 50}
    rows = run_of(many).diff(run_of(many)).rows
    assert next(r for r in rows if r["name"] == "tiny")["reason"].startswith("below 0.1 % of the time")


def test_names_that_differ_by_template_arguments() -> None:
    base = run_of({"void at::k<4, float>(int)": [10] * 3, "f_0x7f3a22c0": [5]})
    new = run_of({"void at::k<8, half>(int)": [10] * 3, "f_0x55e01180": [5]})
    assert {row["status"] for row in base.diff(new).rows} == {"new", "gone"}
    rows = base.diff(new, short_names=True).rows
    assert {row["name"]: row["status"] for row in rows} == {"at::k": "both", "f_0x…": "both"}


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void at::native::vectorized_elementwise_kernel<4, F<float>, A<char*, 3> >(int, F<float>)", "at::native::vectorized_elementwise_kernel"),
        ("void ns::C<int, D<2> >::run<float>(C<int>&) const", "ns::C::run"),
        ("(anonymous namespace)::softmax<float, 10>(float*)", "(anonymous namespace)::softmax"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pinned -> Device)"),
        ("jit_0xdeadbeef01_k", "jit_0x…_k"),
        ("a<b(c]", "a<b(c]"),
        ("", ""),
    ],
)  # fmt: skip
def test_function_names(name: str, short: str) -> None:
    assert function_name(name) == short


def as_in_file(path: str) -> dict[str, dict[str, tuple[int, int]]]:
    """Holistic Trace Analysis's counts and total_duration (ns) by name, of a trace as it is written."""
    found: dict[str, dict[str, tuple[int, int]]] = {"gpu": {}, "cpu": {}}
    for event in json.loads(gzip.decompress(Path(path).read_bytes()))["traceEvents"]:
        if event.get("ph") == "X":
            side = {"cpu_op": "cpu", "kernel": "gpu", "gpu_memcpy": "gpu", "gpu_memset": "gpu"}.get(event["cat"])
            if side:
                count, total = found[side].get(event["name"], (0, 0))
                found[side][event["name"]] = (count + 1, total + round(1000 * event["dur"]))
    return found


def test_counts_and_durations_are_those_of_the_files() -> None:
    """``TraceDiff.compare_traces``: counts and total_duration of either, the difference of both."""
    base, new = (cuptiprof.open(path) for path in RANKS)
    files = [as_in_file(path) for path in RANKS]
    rows = {row["name"]: row for row in base.diff(new).rows}
    assert set(rows) == set(files[0]["gpu"]) | set(files[1]["gpu"])
    for name, row in rows.items():
        for side, file in zip(("base", "new"), files, strict=True):
            assert (row[f"{side}_launches"], row[f"{side}_ns"]) == file["gpu"].get(name, (0, 0))
    rows = {row["name"]: row for row in base.diff(new, "operator").rows}
    for name in set(files[0]["cpu"]) | set(files[1]["cpu"]):
        for side, file in zip(("base", "new"), files, strict=True):
            row = rows[name]
            assert (row[f"{side}_calls"] or 0, row[f"{side}_host_ns"] or 0) == file["cpu"].get(name, (0, 0))
    assert sum(row["base_ns"] for row in rows.values()) == sum(ns for _, ns in files[0]["gpu"].values())


HTA = json.loads((DATA / "analyses" / "trace_diff.json").read_text())
"""What ``TraceDiff.compare_traces`` finds between the two ranks (tests/hta/trace_diff.py): [counts, counts, total_duration, total_duration]."""


@pytest.mark.parametrize("short", [False, True])
def test_as_holistic_trace_analysis_compares_kernels(short: bool) -> None:
    rows = cuptiprof.open(RANKS[0]).diff(cuptiprof.open(RANKS[1]), short_names=short).rows
    found = {row["name"]: [row["base_launches"], row["new_launches"], row["base_ns"], row["new_ns"]] for row in rows}
    assert found == HTA["gpu short" if short else "gpu"]


def test_as_holistic_trace_analysis_compares_operators() -> None:
    rows = cuptiprof.open(RANKS[0]).diff(cuptiprof.open(RANKS[1]), "operator").rows
    found = {
        row["name"]: [row["base_calls"], row["new_calls"], row["base_host_ns"], row["new_host_ns"]] for row in rows
    }
    assert len(found) > 5 and found == {name: HTA["cpu"].get(name) for name in found}


def test_a_run_and_itself() -> None:
    run = cuptiprof.open(RANKS[0])
    for by in GROUPS:
        diff = diff_runs(run, run, by)
        assert not diff.change.any() and not diff.slower(0.0) and {diff.status(i) for i in range(len(diff))} <= {"both"}
        assert int(diff.base.time.sum()) == sum(int(run.tables[t]["duration"].sum()) for t in ("kernels", "memcpys", "memsets"))  # fmt: skip


def test_simulated_beside_real_is_said_and_not_judged() -> None:
    real = run_of({"gemm": noisy(50_000, 50, 1)})
    simulated = run_of({"gemm": noisy(90_000, 50, 2)}, simulated=True, simulated_chip="H100", device="sim")
    report = real.diff(simulated)
    assert report.rows[0]["verdict"] is None and "simulated" in report.rows[0]["reason"]
    text = str(report)
    assert "NOTE: the new run is simulated and the other is not" in text and "New: SIMULATED device" in text
    asked = real.diff(simulated, across_chips=True)
    assert asked.rows[0]["verdict"] == "SLOWER" and "NOTE: the new run is simulated" in str(asked)


def test_other_gpus_are_said_and_not_judged() -> None:
    a, b = run_of({"gemm": noisy(50_000, 50, 1)}), run_of({"gemm": noisy(70_000, 50, 2)}, gpu="NVIDIA H100")
    report = a.diff(b)
    assert report.rows[0]["reason"] == "other GPUs: NVIDIA A100 in the base, NVIDIA H100 now"
    assert report.rows[0]["change_ns"] != 0 and "NOTE: other GPUs" in str(report)
    assert (
        a.diff(run_of({"gemm": noisy(70_000, 50, 2)}, gpu="")).rows[0]["verdict"] == "SLOWER"
    )  # nobody knows of which


def test_empty_runs() -> None:
    some, none = run_of({"gemm": [1000] * 50}), make_result({})
    report = some.diff(none)
    assert [row["status"] for row in report.rows] == ["gone"] and "NOTE: the new run has no GPU work" in str(report)
    assert [row["status"] for row in none.diff(some).rows] == ["new"]
    assert none.diff(none).rows == [] and "Neither run has any GPU work" in str(none.diff(none))
    for by in GROUPS:
        for format in FORMATS:
            assert none.diff(some, by).to(format) and none.diff(none, by).to(format)


def test_counters_of_both() -> None:
    def counted(values: list[float]) -> Result:
        n = len(values)
        return make_result(
            {
                "kernels": [{"name": "gemm", "start": 100 * i, "end": 100 * i + 50, "correlation_id": i + 1} for i in range(n)],
                "metric_ranges": [{"id": i + 1, "kind": 1, "name": "gemm", "correlation_id": i + 1} for i in range(n)],
                "metrics": [{"range": i + 1, "metric": "ipc", "value": v, "count": 1} for i, v in enumerate(values)],
            }
        )  # fmt: skip

    base, new = counted([1.0, 2.0, float("nan")]), counted([float("nan")] * 2)
    assert np.isnan(base.kernels["ipc"][2])
    (row,) = base.diff(new).rows
    assert row["base_ipc"] == 1.5 and row["new_ipc"] is None
    assert "ipc base" in str(base.diff(new))


def test_mistakes() -> None:
    run = run_of({"gemm": [1000]})
    with pytest.raises(ResultError, match=r"did you mean kernel\?"):
        run.diff(run, "kernels")  # type: ignore[arg-type]
    for threshold in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ResultError, match="relative difference"):
            run.diff(run, threshold=threshold)
    with pytest.raises(ResultError, match="rows to show"):
        run.diff(run, limit=-1)
    with pytest.raises(ResultError, match="unit"):
        run.diff(run, units="hours")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("runs")
    for name, ns, seed in (("base", 8_000, 1), ("new", 8_800, 9)):
        run_of({"gemm": noisy(50_000, 100, seed), "relu": noisy(ns, 100, seed + 1)}, steps=50).save(folder / name)
    return str(folder / "base"), str(folder / "new")


@pytest.mark.parametrize(("limit", "status"), [("5%", 1), ("12%", 0)])
def test_the_gate(saved: tuple[str, str], capsys: pytest.CaptureFixture[str], limit: str, status: int) -> None:
    assert main(["diff", *saved, "--fail-if-slower", limit, "--format", "json"]) == status
    out = capsys.readouterr()
    assert json.loads(out.out)["rows"][0]["name"] == "relu"
    assert ("slower by 5 % or more: relu: +" in out.err) == (status == 1)
    assert main(["diff", *saved]) == 0
    assert main(["diff", *reversed(saved), "--fail-if-slower", "1%"]) == 0  # faster


def test_a_gate_that_compares_nothing_is_closed(
    saved: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_of({"gemm": [1000]}, gpu="NVIDIA H100").save(tmp_path / "other")
    assert main(["diff", saved[0], str(tmp_path / "other"), "--fail-if-slower", "5%"]) == 1
    assert "nothing could be judged: other GPUs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["nowhere", "nowhere"], 2, "no such run"),
        ([RANKS[0]], 2, "required: NEW"),
        ([*RANKS, "--by", "kernels"], 2, "did you mean kernel?"),
        ([*RANKS, "--fail-if-slower", "nan%"], 2, "write 5%"),
        ([*RANKS, "--fail-if-slow", "5%"], 2, "did you mean --fail-if-slower?"),
    ],
)
def test_what_is_typed_wrongly(
    arguments: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        assert main(["diff", *arguments]) == status
    except SystemExit as e:
        assert e.code == status
    assert said in capsys.readouterr().err


def test_of_folders_one_rank_is_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file in RANKS:
        shutil.copy(file, tmp_path)
    folder = str(tmp_path)
    for arguments, base in (([folder, RANKS[1]], 0), ([folder, RANKS[1], "--rank", "1"], 1)):
        assert main(["diff", *arguments, "--format", "json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["header"][0].startswith(f"Base: {folder} (rank {base}), 6 steps")
        assert any(row["change_ns"] for row in found["rows"]) == (base == 0)
    assert main(["diff", folder, folder, "--rank", "7"]) == 2
    assert "there is no rank 7\n  hint: there are 0, 1" in capsys.readouterr().err.replace(
        "cuptiprof:   hint", "  hint"
    )


@pytest.mark.parametrize("by", GROUPS)
@pytest.mark.parametrize("format", FORMATS)
def test_all_formats(by: str, format: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", *RANKS, "--by", by, "--format", format, "--limit", "3"]) == 0
    out = capsys.readouterr().out
    if format == "json":
        found = json.loads(out)
        assert len(found["rows"]) <= 3 and found["by"] == by and found["change_per"] == "step"
    else:
        assert out.strip()
