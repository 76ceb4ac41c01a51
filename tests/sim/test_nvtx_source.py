"""NVTX as a source of scopes, with the real ``nvtx`` package: in processes of their own, for NVTX asks for a tool once in each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cuptiprof.device.nvtx_injection import nvtx_library

VARIABLE = "NVTX_INJECTION64_PATH"
HEAD = """
import cuptiprof
from cuptiprof import KernelFilter
from cuptiprof.sim.sim_device import SimDevice
sim = SimDevice()
def notes(prof): return prof.result().metadata.get("note", "")
"""


def run(code: str, *, head: str = HEAD, **environment: str) -> str:
    """What the program prints; it must end well."""
    env = {k: v for k, v in os.environ.items() if k != VARIABLE} | environment
    done = subprocess.run([sys.executable, "-c", head + code], capture_output=True, text=True, timeout=120, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "programs", [pytest.param(60, id="60"), pytest.param(2_000, id="2000", marks=pytest.mark.nightly)]
)
def test_random_programs(programs: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nvtx_programs", str(programs)], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_session_arranges_for_what_has_not_called_yet() -> None:
    run("""
import nvtx
with cuptiprof.profile(device="sim", sources=["nvtx"]) as prof:
    with nvtx.annotate("after import"):
        sim.launch("k")
assert prof.result().kernels["region"][0] == "after import" and not notes(prof), notes(prof)
""")


def test_too_late_is_said_of_the_copy() -> None:
    run("""
import nvtx
with nvtx.annotate("early"): pass
with cuptiprof.profile(device="sim", sources=["nvtx"]) as prof:
    with nvtx.annotate("unheard"):
        sim.launch("k")
assert len(prof.result().regions) == 0
assert "no NVTX ranges of nvtx/_lib/lib." in notes(prof) and "inject_nvtx()" in notes(prof), notes(prof)
""")


def test_the_user_can_arrange_before() -> None:
    run("""
cuptiprof.inject_nvtx()
import nvtx
@nvtx.annotate("decorated")
def work(): sim.launch("k")
work()
with cuptiprof.profile(device="sim", sources=["nvtx"]) as prof:
    work()
assert prof.result().kernels["region"][0] == "decorated" and not notes(prof)
cuptiprof.inject_nvtx()
""")


def test_nothing_is_arranged_unasked() -> None:
    run("""
import os
with cuptiprof.profile(device="sim"):
    sim.launch("k")
assert "NVTX_INJECTION64_PATH" not in os.environ
""")


def test_another_tools_variable_is_left_alone() -> None:
    run(
        """
import os
import nvtx
cuptiprof.inject_nvtx()
with cuptiprof.profile(device="sim", sources=["nvtx"]) as prof:
    with nvtx.annotate("theirs"):
        sim.launch("k")
assert os.environ["NVTX_INJECTION64_PATH"] == "/opt/nsys/libToolsInjection64.so"
assert len(prof.result().regions) == 0
assert "NVTX ranges go to /opt/nsys/libToolsInjection64.so, which another tool has named" in notes(prof), notes(prof)
""",
        **{VARIABLE: "/opt/nsys/libToolsInjection64.so"},
    )


def test_a_variable_that_names_us_already() -> None:
    run(
        """
import nvtx
with nvtx.annotate("before cuptiprof"): pass
import cuptiprof
from cuptiprof.sim.sim_device import SimDevice
with cuptiprof.profile(device="sim", sources=["nvtx"]) as prof:
    with nvtx.annotate("heard"):
        SimDevice().launch("k")
assert prof.result().kernels["region"][0] == "heard" and not prof.result().metadata.get("note")
""",
        head="",
        **{VARIABLE: str(nvtx_library())},
    )


def test_a_library_that_is_gone_is_said(tmp_path: Path) -> None:
    run(
        """
from cuptiprof.errors import CuptiprofError
try:
    with cuptiprof.profile(device="sim", sources=["nvtx"]): pass
except CuptiprofError as e:
    assert "cannot load" in str(e) and "reinstall" in str(e), e
else:
    raise SystemExit("not said")
with cuptiprof.profile(device="sim"): pass
""",
        **{VARIABLE: str(tmp_path / "libcuptiprof_nvtx.so")},
    )


def test_a_region_that_is_a_range_too_is_recorded_once() -> None:
    run("""
import nvtx
for level in ("full", "launch"):
    with cuptiprof.profile(device="sim", sources={"nvtx": level}) as prof:
        with cuptiprof.region("both", nvtx=True):
            sim.launch("k")
    k = prof.result().kernels
    assert (k["region"][0], k["nvtx"][0]) == ("both", ""), (k["region"][0], k["nvtx"][0])
    assert len(prof.result().regions) == 1
""")


PROGRAM = """
import nvtx
def work():
    nvtx.push_range("outer")
    sim.launch("in_outer")
    nvtx.push_range("read", domain="io")
    sim.launch("in_read")
    with cuptiprof.region("reg"):
        sim.launch("in_reg")
    nvtx.pop_range(domain="io")
    nvtx.pop_range()
    r = nvtx.start_range("whole")
    sim.launch("in_whole")
    s = nvtx.start_range("save", domain="io")
    sim.launch("in_both")
    nvtx.end_range(r)
    sim.launch("in_save")
    nvtx.end_range(s)
    sim.launch("outside")
"""
FILTERS = [
    ("outer/", ["in_outer", "in_read", "in_reg"]),
    ("io@read/", ["in_read", "in_reg"]),
    ("regex:i.@rea./", ["in_read", "in_reg"]),
    ("read/", []),
    ("reg/", ["in_reg"]),
    ("whole", ["in_whole", "in_both"]),
    ("io@save", ["in_both", "in_save"]),
    ("whole,save", []),
]


@pytest.mark.parametrize("level", ["full", "launch", "none"])
def test_filters_by_ncus_expressions(level: str) -> None:
    """While it runs, from the finished tables, and with a counter of launches: the same."""
    run(f"""{PROGRAM}
level = {level!r}
sources = {{}} if level == "none" else {{"nvtx": level}}
with cuptiprof.profile(device="sim", sources=sources or ["nvtx"]) as prof:
    work()
everything = prof.result()
for expression, wanted in {FILTERS!r}:
    f = KernelFilter.from_ncu(nvtx_include=expression)
    with cuptiprof.profile(device="sim", kernels=f, sources=sources) as prof:
        work()
    kept = [str(n) for n in prof.result().kernels["name"]]
    assert kept == wanted, (expression, kept)
    kept = [str(n) for n in everything.filter(f).kernels["name"]]
    assert kept == wanted, ("after", expression, kept)
    with cuptiprof.profile(device="sim", kernels=KernelFilter.from_ncu(nvtx_include=expression, skip=1, count=1), sources=sources) as prof:
        work()
    kept = [str(n) for n in prof.result().kernels["name"]]
    assert kept == wanted[1:2], ("counted", expression, kept)
    with cuptiprof.profile(device="sim", kernels=KernelFilter.from_ncu(nvtx_exclude=expression), sources=sources) as prof:
        work()
    kept = [str(n) for n in prof.result().kernels["name"]]
    assert not set(kept) & set(wanted) and len(kept) + len(wanted) == 7, ("left out", expression, kept)
""")


@pytest.mark.parametrize("level", ["full", "launch"])
def test_counters_of_a_range(level: str) -> None:
    run(f"""{PROGRAM}
for expression, wanted in {FILTERS!r}:
    f = KernelFilter.from_ncu(nvtx_include=expression)
    with cuptiprof.profile(device="sim", kernels=f, metrics="ipc", strategy="replay", sources={{"nvtx": {level!r}}}) as prof:
        work()
    counted = [str(n) for n in prof.result().metric_ranges["name"]]
    assert counted == wanted, (expression, counted)
""")


def test_names_of_ranges_survive_the_files(tmp_path: Path) -> None:
    run(f"""{PROGRAM}
with cuptiprof.profile(device="sim", sources=["nvtx"]) as prof:
    work()
prof.result().save({str(tmp_path / "run")!r})
again = cuptiprof.open({str(tmp_path / "run")!r})
for table, column in (("kernels", "nvtx"), ("kernels", "nvtx_start_end"), ("regions", "domain"), ("regions", "source"), ("markers", "name")):
    assert list(again.tables[table][column]) == list(prof.result().tables[table][column]), (table, column)
prof.result().export({str(tmp_path / "trace.json")!r})
""")
    text = (tmp_path / "trace.json").read_text()
    assert '"whole"' in text and '"read"' in text


SCRIPT = """
import nvtx
from cuptiprof.sim.sim_device import SimDevice
sim = SimDevice()
with nvtx.annotate("load"):
    sim.launch("first")
with nvtx.annotate("train", domain="model"):
    sim.launch("second")
"""


def cuptiprof_run(tmp_path: Path, *options: str) -> str:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    env = {k: v for k, v in os.environ.items() if k != VARIABLE}
    done = subprocess.run(
        [sys.executable, "-m", "cuptiprof", "run", "--device", "sim", *options, str(script)],
        capture_output=True, text=True, timeout=120, env=env,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_the_command_line_hears_nvtx(tmp_path: Path) -> None:
    out = cuptiprof_run(tmp_path, "--print-regions")
    assert "load" in out and "train" in out
    out = cuptiprof_run(tmp_path, "--print-regions", "--sources", "none")
    assert "load" not in out and "train" not in out


def test_the_command_line_filters_by_nvtx(tmp_path: Path) -> None:
    for sources in ([], ["--sources", "nvtx=launch"], ["--sources", "none"]):
        out = cuptiprof_run(tmp_path, "--print-gpu-trace", "--nvtx-include", "model@train/", *sources)
        assert "second" in out and "first" not in out


def test_a_source_that_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "cuptiprof", "run", "--device", "sim", "--sources", "nvxt", "x.py"],
        capture_output=True, text=True, timeout=120, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode != 0 and "did you mean 'nvtx'" in done.stderr


def test_the_example() -> None:
    example = Path(__file__).resolve().parents[2] / "examples/nvtx_ranges.py"
    env = {k: v for k, v in os.environ.items() if k != VARIABLE}
    done = subprocess.run(
        [sys.executable, str(example), "--device", "sim"], capture_output=True, text=True, timeout=120, env=env
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["abs", "load", "data@load", "epoch"]
    assert lines[1].split() == ["exp", "train/optimizer", "train", "epoch"]
    assert lines[-1] == "3 of 6 kernels in data@load"


@pytest.mark.parametrize("level", ["full", "launch"])
def test_a_graphs_kernels_know_the_ranges_that_captured_them(level: str) -> None:
    """Beside those open at the launch; of a node that was added by hand, those open where it was added."""
    run(f"""
import nvtx
from cuptiprof.sim.sim_device import Flag, Op
STREAM = 70
with cuptiprof.profile(device="sim", sources={{"nvtx": "{level}"}}) as prof:
    with nvtx.annotate("capture", domain="model"):
        sim.call(Op.GRAPH_BEGIN_CAPTURE, graph_id=5, stream=STREAM)
        for layer in ("attention", "mlp"):
            with nvtx.annotate(layer):
                sim.launch(layer, stream=STREAM)
        sim.launch("bare", stream=STREAM)
        sim.call(Op.GRAPH_END_CAPTURE, graph_id=5, stream=STREAM)
    sim.launch("by hand", graph_id=5, flags=Flag.ADD_NODE)
    for _ in range(3):
        with nvtx.annotate("decode"):
            sim.call(Op.GRAPH_LAUNCH, graph_id=5, stream=3)
k = prof.result().kernels
assert set(k["nvtx"]) == {{"decode"}} and len(k) == 12, k["nvtx"]
captured = set(zip(k["name"], k["capture_nvtx"], k["capture_known"].tolist()))
assert captured == {{
    ("attention", "model@capture/attention", 1),
    ("mlp", "model@capture/mlp", 1),
    ("bare", "model@capture", 1),
    ("by hand", "", 1),
}}, captured
""")
