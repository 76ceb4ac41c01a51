"""Samples of perf beside a run: read as perf prints them, put where they belong by time."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_results import make_result

from cuptiprof.analysis.utilization.host_functions import host_functions
from cuptiprof.cli import main
from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError
from cuptiprof.io.perf_script import read_perf_script

# As perf 6.1 prints: -F comm,pid,tid,time,event,ip,sym,dso with --ns, the default fields, and threads alone with a state of ftrace.
PRINTED = """# captured on: today
python3 12524/12524 89996.887341840: cpu-clock: 
\t          1ccc74 update_one_slot (/usr/lib/libpython3.11.so.1.0)
\t    7ffacb861860 [unknown] ([unknown])

V8 WorkerThread 24636/25607 [002] 6544038.708352:     250000 cpu-clock: 
\tffffffff821d0d54 mas_preallocate+0xe4 ([kernel.kallsyms])
\t          47f2ec Foo::bar(int, std::pair<int, int> (*)()) (inlined)
\t          1c70cd [unknown] (/opt/lib/libtorch cpu.so)

java 25607 4794564.5: cycles:ppp: 
some rest
swapper     0 [003] d..2. 687886.672908:  108724462 cycles:ppp: 
\tffffffffa099768b intel_idle ([kernel.kallsyms])
"""  # noqa: W291


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_what_perf_prints(tmp_path: Path) -> None:
    read = read_perf_script(written(tmp_path / "perf.txt", PRINTED))
    assert read.time.tolist() == [89996887341840, 6544038708352000, 4794564500000000, 687886672908000]
    assert read.process.tolist() == [12524, 24636, -1, -1] and read.thread.tolist() == [12524, 25607, 25607, 0]
    assert [[read.functions[f] for f in read.stacks[s]] if s >= 0 else None for s in read.stack.tolist()] == [
        ["update_one_slot", "[unknown]"],
        ["mas_preallocate", "Foo::bar(int, std::pair<int, int> (*)())", "[libtorch cpu.so]"],
        None,
        ["intel_idle"],
    ]
    assert read.skipped == 1


# Without -g, and with -F that leaves the object out, as perf 6.1 prints them; objects whose names have brackets.
OTHERWISE = """         python3 12524 89996.887341840:     250000 cpu-clock:           1ccc74 update_one_slot+0x1f (/usr/lib/libpython3.11.so.1.0)
 pyenv-version-n 12540 89996.9:     250000 cpu-clock:  ffffffff821d0d54 mas_preallocate+0xe4 ([kernel.kallsyms])

python3 1/1 90000.000000001: cpu-clock: 
\t  1c70cd _PyType_Lookup
\t    1f operator()(int (*)(int))

python3 1/1 90000.000000002: cpu-clock: 
\t  1f load (/opt/a (b)/c.so)
\t  20 main (/tmp/x (deleted))
\t  21 [unknown] (/tmp/y (deleted))
"""  # noqa: W291


def test_other_fields(tmp_path: Path) -> None:
    read = read_perf_script(written(tmp_path / "perf.txt", OTHERWISE))
    assert read.time.tolist() == [89996887341840, 89996900000000, 90000000000001, 90000000000002] and read.skipped == 0
    assert [[read.functions[f] for f in read.stacks[s]] for s in read.stack.tolist()] == [
        ["update_one_slot"],
        ["mas_preallocate"],
        ["_PyType_Lookup", "operator()(int (*)(int))"],
        ["load", "main", "[y (deleted)]"],
    ]


def test_lines_that_nearly_match_take_no_longer(tmp_path: Path) -> None:
    nearly = [
        "python3" + " " * 60_000 + "x",
        "\t 1f " + "a (/" * 15_000,
        "a:" * 30_000,
        "python3 7/7 0.5:" + ": 1f" * 15_000,
    ]
    text = "".join(f"{line}\n" for line in nearly * 40) + "python3 7/7 0.004: cpu-clock: \n"
    began = time.process_time()
    assert len(read_perf_script(written(tmp_path / "p", text)).time) == 41
    assert time.process_time() - began < 2  # a fraction of a second; minutes where a pattern tries everything


def two_kernels(**metadata: object) -> Result:
    """A GPU that works from 1 to 2 ms and from 6 to 7 ms, another from 1.5 to 3 ms: none from 3 to 6 ms."""
    kernels = [{"name": "k", "start": int(a * 1e6), "end": int(b * 1e6), "device": d} for a, b, d in ((1, 2, 0), (6, 7, 0), (1.5, 3, 1))]  # fmt: skip
    return make_result({"kernels": kernels}, {"pid": 7, **metadata})


def perf_text(*samples: tuple[float, int, str]) -> str:
    return "".join(
        f"python3 {pid}/{pid} {ms / 1e3:.9f}: cpu-clock: \n"
        + "".join(f"\t 1f {f} (lib)\n" for f in stack.split())
        + "\n"
        for ms, pid, stack in samples
    )


def test_by_function_while_no_gpu_worked(tmp_path: Path) -> None:
    text = perf_text((0.5, 7, "early"), (1.2, 7, "launch main"), (2.9, 7, "launch main"), (3.1, 7, "load main"), (4, 7, "load load main"),
                     (5.9, 7, "main"), (4, 8, "other"), (6, 7, "launch"), (7, 7, "late"), (5, 7, ""))  # fmt: skip
    found = host_functions(two_kernels(), read_perf_script(written(tmp_path / "p", text)))
    by_name = {
        name: tuple(column[i] for column in (found.self_idle, found.total_idle, found.self_busy, found.total_busy))
        for i, name in enumerate(found.function)
    }
    assert by_name == {
        "launch": (0, 0, 3, 3),
        "main": (1, 3, 0, 2),
        "load": (2, 2, 0, 0),
        "(no stack)": (1, 1, 0, 0),
    }
    assert (found.idle, found.busy, found.elsewhere, found.others) == (4, 3, 2, 1)
    assert (found.idle_ns, found.busy_ns) == (3_000_000, 3_000_000)


def test_time_that_was_not_observed_counts_for_nothing(tmp_path: Path) -> None:
    paused = two_kernels(unobserved_ns=[[3_500_000, 5_000_000]])
    read = read_perf_script(written(tmp_path / "p", perf_text((3.1, 7, "a"), (4, 7, "b"), (5.5, 7, "c"))))
    found = host_functions(paused, read)
    assert found.function == ["a", "c"] and found.elsewhere == 1 and found.idle_ns == 1_500_000


def test_another_clock_is_said(tmp_path: Path) -> None:
    read = read_perf_script(written(tmp_path / "p", perf_text((9e6, 7, "a"))))
    with pytest.raises(ResultError, match=r"none of 1 samples lies between.*\n.*CLOCK_MONOTONIC"):
        host_functions(two_kernels(), read)
    with pytest.raises(ResultError, match=r"none of 1 samples is of the run's process 8"):
        host_functions(two_kernels(pid=8), read)
    with pytest.raises(ResultError, match="no work of a GPU"):
        host_functions(make_result({}), read)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, perf = tmp_path / "run.cuptiprof", tmp_path / "perf.txt"
    two_kernels().save(run)
    written(perf, perf_text((4, 7, "load\x1b[31m main"), (1.1, 7, "launch main")))
    assert main(["report", str(run), "--host-samples", str(perf)]) == 0
    said = capsys.readouterr().out
    assert "Host functions while no GPU worked" in said and r"load\x1b[31m" in said and "\x1b" not in said
    report = two_kernels().with_host_samples(perf).report("host")
    assert [(row["function"], row["self_idle"], row["self_busy"]) for row in report.rows][-1] == ("launch", 0, 1)
    assert main(["report", str(run), "--view", "host"]) == 0
    assert "--host-samples FILE" in capsys.readouterr().out
    for text in ("", "nothing of perf\n"):
        assert main(["report", str(run), "--host-samples", str(written(perf, text))]) == 1
        assert "has no sample of perf script" in capsys.readouterr().err
    assert main(["report", str(run), "--host-samples", str(tmp_path / "none")]) == 1
    assert "No such file" in capsys.readouterr().err


_WORDS = st.sampled_from(["python3", "1/2", "7", "[000]", "5.5:", "9999999999.999999999:", "cpu-clock:", "\t 1f f (lib)", "\n", " ", "(", "\x00", "é", "[unknown]"])  # fmt: skip


@settings(max_examples=200)
@given(st.lists(st.one_of(_WORDS, st.text(max_size=8)), max_size=60))
def test_any_text(tmp_path_factory: pytest.TempPathFactory, words: list[str]) -> None:
    path = tmp_path_factory.getbasetemp() / "any.txt"
    path.write_text(" ".join(words), encoding="utf-8", errors="surrogateescape" if "\ud800" in words else "replace")
    try:
        read = read_perf_script(path)
    except ResultError:
        return
    assert len(read.time) == len(read.process) == len(read.thread) == len(read.stack) > 0
    assert read.stack.max() < len(read.stacks) and np.all(read.time >= 0)
    assert all(0 <= f < len(read.functions) for stack in read.stacks for f in stack)


def test_long_lines_and_deep_stacks_are_bounded(tmp_path: Path) -> None:
    deep = "python3 7/7 0.004: cpu-clock: \n" + "\t 1f f (lib)\n" * 5000 + "x" * 300_000 + "\n"
    read = read_perf_script(written(tmp_path / "p", deep))
    assert [len(s) for s in read.stacks] == [1024] and read.skipped == 5
