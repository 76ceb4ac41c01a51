"""``cuptiprof verify`` on the stand-in: right counts pass, and a wrong one of any kind is found."""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from cuptiprof import verify
from cuptiprof.cli import main
from cuptiprof.device.devices import SimulatedDevice
from cuptiprof.device.sim_gpu import SimGpu
from cuptiprof.errors import DeviceError, MetricError
from cuptiprof.sim.sim_device import Fault, SimDevice
from cuptiprof.verify.checking import run_probes
from cuptiprof.verify.simulated import SimMachine

ALL = verify.all_probes()
COUNTED = [n for n, p in ALL.items() if p.subject not in ("activity", "times")]


@pytest.mark.parametrize("chip", ["H100", "A100", "L4", "B200"])
def test_everything_is_right_where_the_device_counts_right(chip: str) -> None:
    machine = verify.open_machine(f"sim:{chip}")
    checks = verify.run_probes(machine, ALL.values())
    assert [c for c in checks if c.verdict in (verify.WRONG, verify.FAILED)] == []
    assert {c.probe for c in checks} == set(ALL)
    right = {c.probe for c in checks if c.verdict == verify.RIGHT}
    assert set(ALL) - right == {"peer-copies"}
    assert verify.exit_status(checks) == 0
    skipped = {(c.probe, c.metric) for c in checks if c.verdict == verify.SKIPPED}
    lacking = {("mma-f16", "sm__inst_executed_pipe_tensor_op_hmma.sum")} if chip == "B200" else set()
    assert skipped == {("peer-copies", ""), ("reduction", "sum in memory"), ("atomic", "sum in memory")} | lacking


def counters_of(name: str) -> set[str]:
    """Raw counters that a probe's launches cause."""
    machine = SimMachine()
    plan = ALL[name].plan(machine)
    assert isinstance(plan, verify.Counted)
    out = {c for launch in plan.launches for c, v in launch.counts.items() if v}
    if any(launch.active for launch in plan.launches):
        out |= {"sm__cycles_active"}
    if any(launch.resident for launch in plan.launches):
        out |= {"sm__warps_active"}
    return out


# What a probe is about; 20 % too much of it must be seen.
ABOUT = {
    "fma-f32": "smsp__sass_thread_inst_executed_op_ffma_pred_on",
    "add-f64": "smsp__sass_thread_inst_executed_op_dadd_pred_on",
    "mul-f16": "smsp__sass_thread_inst_executed_op_fp16_pred_on",
    "mma-f16": "sm__inst_executed_pipe_tensor",
    "instructions": "smsp__inst_executed",
    "branch-uniform": "smsp__inst_executed",
    "branch-2-ways": "smsp__thread_inst_executed",
    "reduction": "smsp__inst_executed_op_global_red",
    "atomic": "smsp__sass_inst_executed_op_global_atom",
    "shared-load-1-ways": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld",
    "shared-load-32-ways": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld",
    "shared-store-4-ways": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st",
    "stream-read": "dram__bytes_read",
    "stream-write": "dram__bytes_write",
    "stream-copy": "l1tex__t_sectors_pipe_lsu_mem_global_op_st",
    "l2-resident": "lts__t_sectors_srcunit_tex_op_read",
    "l1-warm": "l1tex__t_requests_pipe_lsu_mem_global_op_ld",
    "load-stride-4": "smsp__sass_sectors_mem_global_op_ld",
    "store-misaligned": "smsp__sass_data_bytes_mem_global_op_st",
    "occupancy-warps": "sm__warps_active",
    "occupancy-blocks": "sm__warps_active",
    "occupancy-registers": "sm__warps_active",
    "occupancy-large-shared": "smsp__warps_launched",
    "occupancy-tail": "sm__cycles_active",
}


@pytest.mark.parametrize("name", sorted(ABOUT))
@pytest.mark.parametrize("factor", [1.2, 0.8])
def test_a_wrong_count_is_found(name: str, factor: float) -> None:
    assert ABOUT[name] in counters_of(name)
    checks = run_probes(SimMachine(distort={ABOUT[name]: factor}), [ALL[name]])
    assert verify.exit_status(checks) == 1
    for check in checks:
        if check.verdict == verify.WRONG:
            assert abs(check.measured - check.expected) > check.allowed > 0


class SlowGpu(SimGpu):
    """Its clock moves with its work only, and by what the host takes to wait for it."""

    took = 40_000
    calls = 3_000  # the launch and the wait, on the stand-in

    def __init__(self, device: SimulatedDevice) -> None:
        super().__init__(device)
        self.synchronize = self._wait

    def _wait(self) -> None:
        self.sim.synchronize()
        self.sim.advance(self.sim.now() + self.took)


def on_a_slow_host() -> SimMachine:
    machine = SimMachine(SimulatedDevice(virtual_clock=True))
    assert isinstance(machine.device, SimulatedDevice)
    machine.gpu = SlowGpu(machine.device)
    return machine


def test_a_user_range_has_the_hosts_time_and_the_others_have_not() -> None:
    """To the nanosecond, on a clock that moves only when the test says so."""
    checks = run_probes(on_a_slow_host(), [ALL["times"]])
    assert {c.verdict for c in checks} == {verify.RIGHT} and len(checks) == 8
    measured = {c.metric: c.measured for c in checks}
    for us in (5, 50):
        assert measured[f"{us} us kernel: record"] == us * 1000
        assert measured[f"{us} us kernel: record while counted"] == us * 1000
        assert measured[f"{us} us kernel: automatic range"] == us * 1000
        assert measured[f"{us} us kernel: user range"] - us * 1000 == SlowGpu.took + SlowGpu.calls


@pytest.mark.parametrize(("longer", "wrong"), [(1_900, []), (2_100, ["5 us"]), (5_100, ["5 us", "50 us"])])
def test_an_automatic_range_that_takes_the_hosts_time_is_found(longer: int, wrong: list[str]) -> None:
    """Off by more than 2 us or 10 %, whichever is more."""
    machine = on_a_slow_host()
    SimDevice().inject(Fault.RANGE_TIME, a=longer)
    try:
        checks = run_probes(machine, [ALL["times"]])
    finally:
        SimDevice().clear_faults()
    assert [c.metric for c in checks if c.verdict == verify.WRONG] == [f"{w} kernel: automatic range" for w in wrong]
    assert verify.exit_status(checks) == (1 if wrong else 0)


def test_a_user_range_shorter_than_its_kernel_is_wrong() -> None:
    plan = ALL["times"].plan(on_a_slow_host())
    assert isinstance(plan, verify.Measured)
    measured = {e.key: 5_000.0 if e.key.startswith("5 ") else 50_000.0 for e in plan.expected}
    measured["50 us kernel: user range"] = 44_000.0
    broken = dataclasses.replace(
        ALL["times"], plan=lambda _: dataclasses.replace(plan, measure=lambda _: (measured, ""))
    )
    checks = run_probes(on_a_slow_host(), [broken])
    assert [c.metric for c in checks if c.verdict == verify.WRONG] == ["50 us kernel: user range"]


def test_times_that_may_not_be_counted_are_failed_not_wrong() -> None:
    machine = on_a_slow_host()
    SimDevice().inject(Fault.FAIL_CALL, "cuptiRangeProfilerEnable", a=35)
    try:
        checks = run_probes(machine, [ALL["times"]])
    finally:
        SimDevice().clear_faults()
    by = {c.metric: c for c in checks}
    assert verify.exit_status(checks) == 2
    for us in (5, 50):
        assert by[f"{us} us kernel: record"].verdict == verify.RIGHT
        for way in ("automatic range", "user range"):
            assert by[f"{us} us kernel: {way}"].verdict == verify.FAILED
            assert "PRIVILEGES" in by[f"{us} us kernel: {way}"].reason


@pytest.mark.parametrize("name", ["fma-f32", "mul-f64", "load-stride-1", "reduction"])
def test_exact_counts_are_exact(name: str) -> None:
    counter = sorted(counters_of(name))[0]
    assert verify.exit_status(run_probes(SimMachine(distort={counter: 1 + 1e-3}), [ALL[name]])) == 1


@pytest.mark.parametrize("name", ["duration", "copies", "memsets", "streams", "graph", "dependent"])
def test_lost_records_are_found(name: str) -> None:
    machine = verify.open_machine("sim")
    plan = ALL[name].plan(machine)
    assert isinstance(plan, verify.Traced)
    work: Callable[[Any], None] = plan.work

    def losing(m: Any) -> None:
        SimDevice().inject(Fault.DROP_RECORDS, a=3)
        work(m)

    broken = dataclasses.replace(ALL[name], plan=lambda _: dataclasses.replace(plan, work=losing))
    try:
        checks = run_probes(machine, [broken])
    finally:
        SimDevice().clear_faults()
    assert verify.exit_status(checks) == 1
    assert {c.metric for c in checks if c.verdict == verify.WRONG} >= {"records lost"}


@pytest.mark.parametrize("name", [n for n in ALL if ALL[n].subject == "activity" and n != "peer-copies"])
def test_no_records_at_all_are_no_crash(name: str) -> None:
    machine = verify.open_machine("sim")
    plan = ALL[name].plan(machine)
    assert isinstance(plan, verify.Traced)
    idle = dataclasses.replace(ALL[name], plan=lambda _: dataclasses.replace(plan, work=lambda m: None))
    checks = run_probes(machine, [idle])
    assert verify.exit_status(checks) in (1, 2)
    assert [c for c in checks if c.verdict in (verify.WRONG, verify.FAILED)]


def test_wrong_durations_are_found() -> None:
    probe = ALL["duration"]
    machine = verify.open_machine("sim")
    launch = machine.launch
    machine.launch = lambda op, stream=0: launch(  # type: ignore[method-assign]
        dataclasses.replace(op, lasts=op.lasts * 3 // 2), stream
    )
    checks = run_probes(machine, [probe])
    assert {c.verdict for c in checks if c.metric != "records lost"} == {verify.WRONG}


def test_one_failing_probe_does_not_stop_the_others() -> None:
    def refuse(_: Any) -> Any:
        raise DeviceError("it is on fire", hint="run")

    machine = verify.open_machine("sim")
    checks = run_probes(machine, [dataclasses.replace(ALL["copies"], plan=refuse), ALL["memsets"]])
    assert [c.verdict for c in checks if c.probe == "copies"] == [verify.FAILED]
    assert "it is on fire" in checks[0].why + checks[0].reason
    assert {c.verdict for c in checks if c.probe == "memsets"} == {verify.RIGHT}
    assert verify.exit_status(checks) == 2


def test_denied_counters_fail_and_say_why() -> None:
    machine = verify.open_machine("sim")
    probe = ALL["fma-f32"]
    original = machine.launch

    def deny(launch: Any, stream: int = 0) -> None:
        SimDevice().inject(Fault.NO_PRIVILEGES, a=1)
        original(launch, stream)

    machine.launch = deny  # type: ignore[method-assign]
    try:
        checks = run_probes(machine, [probe])
    finally:
        SimDevice().clear_faults()
    assert {c.verdict for c in checks} == {verify.FAILED}
    assert all("NVreg_RestrictProfilingToAdminUsers" in c.reason for c in checks)
    assert verify.exit_status(checks) == 2


def test_expected_values_come_from_the_chip(capsys: pytest.CaptureFixture[str]) -> None:
    rows = {}
    for chip, sms in (("H100", 132), ("A100", 108)):
        assert main(["verify", "--device", f"sim:{chip}", "--probe", "fma-f32", "--format", "json"]) == 0
        rows[sms] = json.loads(capsys.readouterr().out)["rows"][0]["expected"]
    assert rows[132] / rows[108] == pytest.approx(132 / 108)


def test_json_has_raw_numbers_and_says_simulated(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["verify", "--device", "sim", "--probe", "reduction", "--probe", "duration", "--format", "json"]
    assert main(arguments) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["metadata"]["simulated"] is True
    by_metric = {r["metric"]: r for r in data["rows"]}
    assert by_metric["duration of kernel 2"]["expected"] == 1_000_000
    assert by_metric["sum in memory"]["measured"] is None
    assert {r["verdict"] for r in data["rows"]} == {"right", "skipped"}


@pytest.mark.parametrize("form", ["text", "markdown", "csv", "rich"])
def test_every_format_says_simulated(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--device", "sim", "--probe", "add-f32", "--format", form]) == 0
    out = capsys.readouterr().out.replace("\\", "")  # Markdown escapes
    assert "SIMULATED" in out and "flop_count_sp_add" in out and "right" in out


def test_a_wrong_number_exits_with_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = SimMachine(distort={ABOUT["fma-f32"]: 2.0})
    monkeypatch.setattr(verify, "open_machine", lambda device: wrong)
    assert main(["verify", "--probe", "fma-f32"]) == 1
    assert "wrong" in capsys.readouterr().out


def test_names_are_checked(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(MetricError, match="fma-f23") as error:
        verify.choose(["fma-f23"])
    assert "fma-f32" in error.value.hint
    assert main(["verify", "--probe", "fma-f23"]) == 2
    assert "fma-f32" in capsys.readouterr().err
    assert main(["verify", "--device", "replay:x.json"]) == 2


def test_the_list_names_every_probe(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--list", "--format", "json"]) == 0
    assert [r["probe"] for r in json.loads(capsys.readouterr().out)["rows"]] == list(ALL)


def test_it_is_a_command_of_its_own_process() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "cuptiprof", "verify", "--device", "sim", "--probe", "graph", "--format", "csv"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    assert "20 nodes, 50 times" in run.stdout


def test_there_is_nothing_that_nothing_expects() -> None:
    machine = verify.open_machine("sim")
    for name in COUNTED:
        plan = ALL[name].plan(machine)
        assert isinstance(plan, verify.Counted) and plan.expected
        for e in plan.expected:
            assert callable(e.value) or math.isfinite(e.value)
            assert e.why and 0 <= e.tolerance <= 0.1
