"""Our probes beside ncu's numbers: ncu is a script that prints its table with what the launches' arithmetic says."""

from __future__ import annotations

import json
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import agreement, agreement_probes
from benchmarks.agreement_compare import Row, ncu_number, read_ncu
from cuptiprof import verify

NAMES = ["fma-f32", "mma-f16", "stream-read", "instructions"]
FAKE = """#!{python}
import csv, json, sys
arguments = sys.argv[1:]
assert arguments[arguments.index("--kernel-name") + 1] == "regex:^probe_", arguments
assert arguments[arguments.index("-m") + 1] == "benchmarks.agreement_probes", arguments
metrics = arguments[arguments.index("--metrics") + 1].split(",")
launches = json.load(open({table!r}))
if not launches:
    print("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission")
    sys.exit(1)
print("==PROF== Connected to process 1")
out = csv.writer(sys.stdout, quoting=csv.QUOTE_ALL)
out.writerow(["ID", "Process ID", "Kernel Name", "Context", "Stream", *metrics])
out.writerow(["", "", "", "", "", *("inst" for _ in metrics)])
for i, (name, values) in enumerate(launches):
    cells = (values.get(m) for m in metrics)
    out.writerow([i, 1, name, 1, 7, *("n/a" if c is None else f"{{c:,.6f}}" for c in cells)])
"""

Launches = list[tuple[str, dict[str, float]]]
Ncu = Callable[[Launches], list[Row]]


def theirs() -> Launches:
    """Each launch's sums, by arithmetic; of what is no sum, what cuptiprof reads stands in, so that it is compared at all."""
    machine = verify.open_machine("sim")
    work = agreement_probes.counted_work(machine, NAMES)
    ours = agreement_probes.count_ours(machine, work)
    launches = [launch for w in work for launch in w.launches]
    assert len(launches) == len(ours) == 5
    return [(f"{launch.kernel}(void *)", {**mine, **{f"{c}.sum": v for c, v in launch.counts.items()}}) for launch, (_, mine) in zip(launches, ours, strict=True)]  # fmt: skip


@pytest.fixture
def ncu(tmp_path: Path) -> Ncu:
    """Rows of the comparison with an ncu that found these launches."""

    def run(launches: Launches) -> list[Row]:
        table, program = tmp_path / "launches.json", tmp_path / "ncu"
        table.write_text(json.dumps(launches))
        program.write_text(FAKE.format(python=sys.executable, table=str(table)))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return agreement.probes_under_ncu(str(program), "sim", NAMES)

    return run


def test_equal_numbers_agree(ncu: Ncu) -> None:
    rows = ncu(theirs())
    assert [r for r in rows if not r.agrees] == []
    exact = {r.what for r in rows if r.tolerance == 0 and r.what.endswith(".sum")}
    assert "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum" in exact and "dram__bytes_read.sum" not in exact
    flops = next(r for r in rows if r.what == "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum")
    assert flops.kernel == "fma-f32: probe_fma_f32" and flops.theirs > 1e6
    assert {r.kernel for r in rows} >= {"instructions: probe_straight_short [0]", "instructions: probe_straight_long [1]"}  # fmt: skip


def test_one_instruction_more_disagrees_and_a_percent_of_bytes_does_not(ncu: Ncu) -> None:
    launches = theirs()
    launches[0][1]["smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"] += 1
    launches[2][1]["dram__bytes_read.sum"] *= 1.015
    assert [(r.kernel, r.what) for r in ncu(launches) if not r.agrees] == [
        ("fma-f32: probe_fma_f32", "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum")
    ]
    launches[2][1]["dram__bytes_read.sum"] *= 1.015
    assert "dram__bytes_read.sum" in {r.what for r in ncu(launches) if not r.agrees}


def test_a_value_that_ncu_lacks_disagrees(ncu: Ncu) -> None:
    launches = theirs()
    del launches[1][1]["sm__inst_executed_pipe_tensor.sum"]
    wrong = [r for r in ncu(launches) if not r.agrees]
    assert [r.what for r in wrong] == ["sm__inst_executed_pipe_tensor.sum: tools that have a value"]
    assert (wrong[0].ours, wrong[0].theirs) == (1, 2)


def test_a_launch_that_only_one_saw_stops_the_comparison(ncu: Ncu) -> None:
    rows = ncu(theirs()[:-1])
    assert [(r.what, r.agrees) for r in rows] == [("launches, cuptiprof", True), ("launches, ncu", False)]
    launches = theirs()
    launches[0], launches[1] = launches[1], launches[0]
    assert sum(r.what == "names as launched" and not r.agrees for r in ncu(launches)) == 2


def test_an_ncu_that_fails_says_why(ncu: Ncu) -> None:
    with pytest.raises(ValueError, match="ended with 1: ==ERROR== ERR_NVGPUCTRPERM"):
        ncu([])


def test_cells_of_the_table() -> None:
    assert [ncu_number(t) for t in ("1,024", "0.5", "n/a", "", "nan", "inf", "(!) n/a")] == [1024.0, 0.5] + [None] * 5
    with pytest.raises(ValueError, match="no column 'Kernel Name'"):
        read_ncu('"ID","m"\n"0","1"\n', ["m"])
