"""How two tools' numbers are laid side by side: on numbers made by hand, and ncu's CSV as it prints it."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest

from benchmarks import agreement
from benchmarks.agreement_compare import (  # fmt: skip
    Kernel,
    Row,
    compare_each,
    compare_kernels,
    compare_metrics,
    key_of,
    read_ncu,
    tolerance_of,
)

NCU = """==PROF== Connected to process 4711 (/usr/bin/python3)
==PROF== Profiling "vectorized_elementwise_kernel": 0%....100% - 2 passes
"ID","Process ID","Kernel Name","Context","Stream","dram__bytes_read.sum","sm__inst_executed.sum"
"","","","","","byte","inst"
"0","4711","void at::add<float>(int)","1","7","4,194,304","1,024"
"1","4711","void at::mul<float>(int)","1","7","2097152.5","512"
"""


def kernels(count: int, duration: int, name: str = "void a<int>(float *)", stream: int = 7) -> list[Kernel]:
    return [Kernel(name, i * 100, duration, stream, (4, 1, 1)) for i in range(count)]


def test_times_within_one_percent_agree_and_others_do_not() -> None:
    rows = {r.what: r for r in compare_kernels("p", kernels(3, 1009), kernels(3, 1000, "void a<int>(float*)"))}
    assert len(rows) == 4 and all(r.agrees for r in rows.values())
    rows = {r.what: r for r in compare_kernels("p", kernels(3, 1011), kernels(3, 1000))}
    assert [w for w, r in rows.items() if not r.agrees] == ["duration, median (ns)"]


def test_what_only_one_has_disagrees() -> None:
    (row,) = compare_kernels("p", kernels(3, 5), [])
    assert (row.ours, row.theirs, row.agrees) == (3, 0, False) and math.isinf(row.difference)
    rows = compare_kernels("p", kernels(2, 5), kernels(3, 5))
    assert [r.what for r in rows if not r.agrees] == ["count"]
    other_grid = [Kernel(k.name, k.start, k.duration, k.stream, (8, 1, 1)) for k in kernels(2, 5)]
    assert [r.what for r in compare_kernels("p", kernels(2, 5), other_grid) if not r.agrees] == ["different grids"]


def test_kernel_by_kernel() -> None:
    assert all(r.agrees for r in compare_each("p", kernels(5, 10), kernels(5, 11), slack_ns=1))
    rows = {r.what: r for r in compare_each("p", kernels(5, 10), kernels(5, 12), slack_ns=1)}
    assert not rows["durations equal"].agrees and rows["starts equal"].agrees
    rows = {r.what: r for r in compare_each("p", kernels(4, 10), kernels(5, 10), slack_ns=1)}
    assert not rows["kernels"].agrees
    assert key_of("a<b , c>( int )") == key_of("a<b, c>(int)")


def test_ncu_csv() -> None:
    read = read_ncu(NCU, ["sm__inst_executed.sum", "dram__bytes_read.sum"])
    assert [name for name, _ in read] == ["void at::add<float>(int)", "void at::mul<float>(int)"]
    assert read[0][1] == {"sm__inst_executed.sum": 1024.0, "dram__bytes_read.sum": 4194304.0}
    assert read[1][1]["dram__bytes_read.sum"] == 2097152.5
    with pytest.raises(ValueError, match="no table"):
        read_ncu("==ERROR== ERR_NVGPUCTRPERM - no permission", ["a"])
    with pytest.raises(ValueError, match="no column"):
        read_ncu(NCU, ["lts__t_sectors.sum"])


def test_instruction_counts_must_be_equal_and_bytes_need_not() -> None:
    assert tolerance_of("sm__inst_executed.sum") == 0
    assert tolerance_of("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum") == 0
    assert tolerance_of("dram__bytes_read.sum") == tolerance_of("sm__inst_executed.avg.per_cycle_active") == 0.02
    theirs = read_ncu(NCU, ["sm__inst_executed.sum", "dram__bytes_read.sum"])
    ours = [(n, {m: v * 1.015 if m.startswith("dram") else v for m, v in values.items()}) for n, values in theirs]
    assert all(r.agrees for r in compare_metrics(ours, theirs))
    ours[0][1]["sm__inst_executed.sum"] += 1
    assert [r.what for r in compare_metrics(ours, theirs) if not r.agrees] == ["sm__inst_executed.sum"]
    assert not compare_metrics(ours[:1], theirs)[0].agrees


def test_rows_say_how_far_apart() -> None:
    row = Row("p", "k", "w", 1.03, 1.0, 0.02).as_dict()
    assert row["difference"] == 0.03 and row["agrees"] is False


def test_recorded_traces_agree_on_the_stand_in_and_a_changed_one_does_not(monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    data = agreement.measure("sim")
    assert (
        data["agrees"] and data["simulated"] and set(data["missing"]) == {"ncu, probes", "ncu, step", "torch.profiler"}
    )
    assert {r["part"] for r in data["rows"]} == {f"torch.profiler, {t}" for t in ("train-v100", "alexnet-a100", "triton-a100")}  # fmt: skip
    # The same comparison against a trace in which one kernel took 5 us longer.
    real = agreement.read_trace

    def changed(path: Path) -> list[Kernel]:
        first, *rest = real(path)
        return [dataclasses.replace(first, duration=first.duration + 5000), *rest]

    monkeypatch.setattr(agreement, "read_trace", changed)
    wrong = [r["what"] for r in agreement.measure("sim")["rows"] if not r["agrees"]]
    assert set(wrong) == {"durations equal"} and len(wrong) == 3
