"""Counters where there is no GPU: what costs nothing when not asked for, errors, plans for real chips, the hardware run's parts.

NVIDIA's own libcupti 13.0, no driver. Each question about a process is asked in one of its own.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import cuptiprof
from cuptiprof.errors import DeviceError
from cuptiprof.sim.sim_device import SimDevice

pytest_plugins = ["nvidia_libraries"]
ROOT = Path(__file__).resolve().parents[2]

# Prints what a process holds after a session on the stand-in, with NVIDIA's library loaded beside it.
SESSION = """
import json, sys
import cuptiprof
from cuptiprof import _core
from cuptiprof.sim.sim_device import SimDevice

library = _core.load_cupti(sys.argv[1], "test")
with cuptiprof.profile(device="sim", budget="64 MB") as prof:
    device = SimDevice()
    for _ in range(100):
        device.launch("kernel", duration_ns=100)
assert len(prof.result().kernels) == 100
if sys.argv[2] == "planned":
    planner = _core.MetricPlanner(library, "GH100")
    assert planner.plan(["sm__warps_active.avg.pct_of_peak_sustained_active"])[0].passes == 1
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
maps = open("/proc/self/maps").read()
print(json.dumps({
    "nvperf": "libnvperf" in maps,
    "cupti": "libcupti.so" in maps,
    "anonymous": 1024 * int(status["RssAnon"].split()[0]),
    "modules": sorted(m for m in sys.modules if m.startswith(("cuptiprof.counters", "cuptiprof.metrics"))),
}))
"""
# The same program had it no counters in Python: the one module that a session imports is an empty one.
WITHOUT_COUNTERS = """
import sys, types
stub = types.ModuleType("cuptiprof.counters.request")
stub.make_request = lambda **keywords: None
package = types.ModuleType("cuptiprof.counters")
package.__path__ = []
sys.modules |= {"cuptiprof.counters": package, "cuptiprof.counters.request": stub}
"""


NO_TORCH = """
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("no torch in this process")
sys.meta_path.insert(0, NoTorch())
"""


def run(program: str, *arguments: str) -> Any:
    """The JSON that a Python program prints, in a process of its own without PyTorch."""
    done = subprocess.run(
        [sys.executable, "-c", NO_TORCH + program, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_a_plain_session_loads_nothing_of_counters(cupti_13_0: str) -> None:
    held = run(SESSION, cupti_13_0, "plain")
    assert held["cupti"] and not held["nvperf"]
    allowed = {"cuptiprof.counters", "cuptiprof.counters.request", "cuptiprof.counters.controls"}
    assert set(held["modules"]) <= allowed
    planned = run(SESSION, cupti_13_0, "planned")
    assert planned["nvperf"]  # else the first line would say nothing


def test_a_plain_session_holds_less_than_a_megabyte_for_counters(cupti_13_0: str) -> None:
    def held(program: str, what: str = "plain") -> float:
        return statistics.median(run(program, cupti_13_0, what)["anonymous"] for _ in range(3))

    plain, without = held(SESSION), held(WITHOUT_COUNTERS + SESSION)
    assert plain - without < 1e6
    assert held(SESSION, "planned") - plain > 1e6  # what planning takes is seen by this measure


def test_counters_on_a_gpu_that_is_not_there(no_driver: None) -> None:
    prof = cuptiprof.profile(device="cuda", metrics=["ipc"])
    with pytest.raises(DeviceError) as caught:
        prof.start()
    assert 'device="sim"' in caught.value.hint and "doctor" in caught.value.hint
    assert prof.state == "idle"
    with cuptiprof.profile(device="sim", metrics=["ipc"]) as again:
        SimDevice().launch("kernel", duration_ns=100)
    assert len(again.result().metric_ranges) == 1


@pytest.mark.parametrize(("chip", "passes"), [("TU102", 2), ("GA100", 1), ("AD102", 1), ("GH100", 1)])
def test_plans_for_real_chips_without_torch(chip: str, passes: int) -> None:
    """Occupancy, ipc and DRAM throughputs are one pass together but for Turing; L2's hit rate is two by itself."""
    program = "from cuptiprof.cli import main\nsys.exit(main(sys.argv[1:]))"
    names = ["achieved_occupancy", "ipc", "dram_read_throughput", "dram_write_throughput", "dram_utilization"]

    def plan(*names: str) -> Any:
        arguments = ["metrics", *names, "--chip", chip, "--passes", "--format", "json"]
        return run(program, *arguments)

    told = plan(*names)
    assert {row["name"] for row in told["rows"]} == set(names) and told["metadata"]["chip"] == chip
    assert told["passes_together"] == passes
    assert plan("l2_tex_hit_rate")["passes_together"] == 2


# The checkout comes last on the path: the package under test is the installed one.
FROM_CHECKOUT = """
import sys
sys.path.append(sys.argv.pop(1))
"""


def test_every_question_to_the_hardware_is_answered_on_the_stand_in(tmp_path: Path) -> None:
    program = FROM_CHECKOUT + "import runpy\nrunpy.run_module('benchmarks.probes', run_name='__main__', alter_sys=True)"
    done = subprocess.run(
        [sys.executable, "-c", program, str(ROOT), "--all", "--device", "sim", "--seconds", "120"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=180,
    )
    lines = {line["probe"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert done.returncode == 0 and len(lines) >= 20, done.stderr[-2000:]
    assert all(line["simulated"] and line["question"] for line in lines.values())
    assert not [name for name, line in lines.items() if "error" in line]
    assert lines["replay_restarted_in_callbacks"]["answer"]["ranges_after_each"] == [1, 2, 3, 4, 5, 6]
    assert lines["user_range_without_synchronising"]["answer"]["kernel_is_inside"] is True
    records = lines["records_of_counted_launches"]["answer"]
    assert records["replay"]["counted"] == 20 and records["replay"]["passes"] > 1
    assert lines["locked_clocks"]["answer"] == {"not applicable": "the stand-in has no clocks to lock"}


BROKEN = f"""{FROM_CHECKOUT}
import os, time
from benchmarks.probes import __main__ as probes
probes.PROBE_SECONDS = 3.5
def crashes(work): os.abort()
def hangs(work): time.sleep(60)
def raises(work): raise ValueError("no")
def answers(work): return {{"yes": 1}}
probes.PROBES = {{p.__name__: p for p in (crashes, hangs, raises, answers)}}
probes.ask_all("sim", 60)
"""


def test_a_question_that_crashes_or_hangs_is_an_answer(tmp_path: Path) -> None:
    command = [sys.executable, "-c", BROKEN, str(ROOT)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    lines = {line["probe"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert lines["crashes"]["error"] == "crashed: signal 6" and "killed after" in lines["hangs"]["error"]
    assert lines["raises"]["error"] == "ValueError: no" and lines["answers"]["answer"] == {"yes": 1}


def test_a_part_of_the_hardware_run_that_hangs_or_comes_too_late_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.hardware import Part, run_part

    log = tmp_path / "log.txt"
    # The part's own child keeps its pipes open: it must be ended too.
    hangs = "import subprocess, sys; print('{}', flush=True); subprocess.run(['sleep', '60'])"
    began = time.monotonic()
    line, output = run_part(Part("hangs", ["-c", hangs], 5.5), log, began + 60)
    assert not line["ok"] and line["tail"][-1] == "timed out after 6 s" and output.strip() == "{}"
    assert time.monotonic() - began < 30
    line, output = run_part(Part("late", ["-c", "print(1)"], 30), log, time.monotonic() + 1)
    assert line["tail"] == ["not run: no time left"] and not line["ok"]
    line, output = run_part(Part("works", ["-c", "print('{\"a\": 1}')"], 30), log, time.monotonic() + 60)
    assert line["ok"] and json.loads(output) == {"a": 1} and "== works: " in log.read_text()
