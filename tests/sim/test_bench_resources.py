"""Locked clocks, energy and memory of a call: what NVML and PyTorch are asked, what is said when they do not answer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

import cuptiprof
from cuptiprof.bench import Count, Measurement
from cuptiprof.bench.results.row import Row
from cuptiprof.bench.results.store import Results, pool
from cuptiprof.cli import main
from cuptiprof.data.clock_state import ClockState, NoClocks
from cuptiprof.device import locked_clocks as locks
from cuptiprof.device.devices import SimulatedDevice
from cuptiprof.device.gpu_clocks import NvmlClocks
from cuptiprof.device.locked_clocks import locked_clocks, unlock_all
from cuptiprof.errors import BenchError, ResultError
from cuptiprof.sim.sim_clocks import BASE_MHZ


@pytest.fixture
def machine() -> SimulatedDevice:
    return SimulatedDevice(virtual_clock=True)


@pytest.mark.parametrize(("target", "mhz"), [("base", BASE_MHZ), ("max", 1980.0), (1200, 1200.0)])
def test_the_clock_is_locked_while_it_is_measured(machine: SimulatedDevice, target: Any, mhz: float) -> None:
    seen = set()

    def work() -> None:
        seen.add(machine.clocks.locked_mhz())
        machine.sim.launch("k", duration_ns=100_000)

    m = cuptiprof.bench(work, device=machine, stop=Count(100), lock_clocks=target)
    assert seen == {mhz} and machine.clocks.locked_mhz() == float("inf")
    assert m.sm_hz == pytest.approx([mhz * 1e6] * len(m.sm_hz), rel=1e-3)
    assert m.environment["clocks"]["locked"] == target
    # 1200 MHz is 61 % of the highest, and what was asked for: nothing is throttled.
    assert not any("throttled" in n or "stays at" in n or "though locked" in n for n in m.notes)


def test_a_clock_that_is_not_what_it_was_locked_to_is_said(machine: SimulatedDevice) -> None:
    machine.clocks.at(0, ClockState(1600.0))
    m = cuptiprof.bench(
        lambda: machine.sim.launch("k", duration_ns=100_000), device=machine, stop=Count(50), lock_clocks=1900
    )
    assert "the SM clock was 1600 MHz, though locked to 1900" in m.notes


@pytest.mark.parametrize("end", [ValueError("no"), KeyboardInterrupt(), SystemExit(3)])
def test_it_is_given_back_however_measuring_ends(machine: SimulatedDevice, end: BaseException) -> None:
    calls = iter(range(100))

    def work() -> None:
        machine.sim.launch("k", duration_ns=100_000)
        if next(calls) == 30:
            assert machine.clocks.locked_mhz() == 1500
            raise end

    with pytest.raises(type(end)):
        cuptiprof.bench(work, device=machine, lock_clocks=1500)
    assert machine.clocks.locked_mhz() == float("inf") and not locks._locked


def test_an_interruption_while_it_is_being_locked(machine: SimulatedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    real = machine.clocks.lock

    def interrupted(target: Any) -> None:
        real(target)
        raise KeyboardInterrupt

    monkeypatch.setattr(machine.clocks, "lock", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cuptiprof.bench(lambda: None, device=machine, lock_clocks=1500)
    assert machine.clocks.locked_mhz() == float("inf")


@pytest.mark.parametrize("target", ["bse", 0, -5, 1.5, True])
def test_no_clock(machine: SimulatedDevice, target: Any) -> None:
    with pytest.raises(BenchError, match="is no clock") as caught:
        cuptiprof.bench(lambda: None, device=machine, lock_clocks=target)
    assert target != "bse" or "did you mean base" in str(caught.value)


def test_what_cannot_be_locked_is_an_error_before_anything_runs(machine: SimulatedDevice) -> None:
    machine.clocks.may_lock = False
    ran: list[int] = []
    with pytest.raises(BenchError, match="cannot be locked"):
        cuptiprof.bench(lambda: ran.append(1), device=machine, lock_clocks="base")
    with pytest.raises(BenchError, match="no GPU"):
        cuptiprof.bench(lambda: ran.append(1), device="host", lock_clocks="base")
    assert not ran and not locks._locked


class Nvml:
    """NVML's calls of nvidia-ml-py 13 that are used here; `error` is what they answer."""

    NVML_CLOCK_SM = 1
    NVML_CLOCK_LIMIT_ID_TDP = 0xFFFFFF01

    class NVMLError(Exception):
        def __init__(self, value: int) -> None:
            super().__init__({3: "Not Supported", 4: "Insufficient Permissions"}[value])
            self.value = value

    def __init__(self, error: int = 0) -> None:
        self.said: list[tuple[Any, ...]] = []
        self.error = error

    def _answer(self, *said: Any) -> None:
        if self.error:
            raise self.NVMLError(self.error)
        self.said.append(said)

    def nvmlDeviceGetMaxClockInfo(self, gpu: str, kind: int) -> int:
        assert kind == self.NVML_CLOCK_SM
        return 1980

    def nvmlDeviceSetGpuLockedClocks(self, gpu: str, low: int, high: int) -> None:
        self._answer("lock", gpu, low, high)

    def nvmlDeviceResetGpuLockedClocks(self, gpu: str) -> None:
        self._answer("reset", gpu)

    def nvmlDeviceGetTotalEnergyConsumption(self, gpu: str) -> int:
        self._answer("energy", gpu)
        return 12_345


def test_what_nvml_is_asked() -> None:
    nvml = Nvml()
    clocks = NvmlClocks(nvml, "gpu")
    for target in ("base", "max", 1410):
        with locked_clocks(clocks, target):  # type: ignore[arg-type]
            pass
    asked = [("lock", "gpu", n, n) for n in (0xFFFFFF01, 1980, 1410)]
    assert nvml.said == [step for one in asked for step in (one, ("reset", "gpu"))]
    assert clocks.energy_j() == 12.345


@pytest.mark.parametrize(("code", "hint"), [(4, "root"), (3, "Volta")])
def test_what_nvml_refuses(code: int, hint: str) -> None:
    nvml = Nvml(code)
    clocks = NvmlClocks(nvml, "gpu")
    with pytest.raises(BenchError, match="cannot be locked: NVML") as caught, locked_clocks(clocks, 1500):
        pytest.fail("not reached")
    assert hint in caught.value.hint and not locks._locked
    assert clocks.energy_j() is None and "NVML" in clocks.why_not
    nvml.error = 0
    with pytest.warns(RuntimeWarning, match="nvidia-smi -rgc"), locked_clocks(clocks, 1500):
        nvml.error = code  # the driver is gone meanwhile
    assert not locks._locked


def test_a_program_that_ends_in_the_middle_gives_the_clock_back() -> None:
    nvml = Nvml()
    inside = locked_clocks(NvmlClocks(nvml, "gpu"), 1500)
    inside.__enter__()
    unlock_all()
    assert nvml.said[-1] == ("reset", "gpu")
    inside.__exit__(None, None, None)
    assert len(nvml.said) == 2
    code = (
        "import os, cuptiprof.device.locked_clocks as l\n"
        "class Clocks:\n"
        "  def lock(self, target): print('locked', flush=True)\n"
        "  def unlock(self): print('unlocked', flush=True)\n"
        "inside = l.locked_clocks(Clocks(), 1500); inside.__enter__()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["locked", "unlocked"]


def test_ctrl_c_on_the_command_line(tmp_path: Any) -> None:
    (tmp_path / "bench_a.py").write_text(
        "import cuptiprof, time\n"
        "from cuptiprof.sim.sim_clocks import SimClocks\n"
        "from cuptiprof.sim.sim_device import SimDevice\n"
        "lock, unlock = SimClocks.lock, SimClocks.unlock\n"
        "SimClocks.lock = lambda self, t: (lock(self, t), print('locked', t, flush=True))\n"
        "SimClocks.unlock = lambda self: (unlock(self), print('unlocked', flush=True))\n"
        "@cuptiprof.benchmark\n"
        "def a():\n"
        "    return lambda: (SimDevice().launch('k', duration_ns=1000), time.sleep(0.01))\n"
    )
    command = [
        sys.executable,
        "-m",
        "cuptiprof",
        "bench",
        "bench_a.py",
        "--device",
        "sim",
        "--lock-clocks",
        "1500",
        "--time",
        "30",
    ]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stderr is not None
        seen: list[str] = []
        reader = threading.Thread(target=lambda: seen.extend(iter(process.stderr.readline, "")))
        reader.start()
        deadline = time.monotonic() + 60
        while not any("locked 1500" in line for line in seen) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.5)
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(60) == 130
        reader.join(60)
    assert any(line.strip() == "unlocked" for line in seen), seen


def test_energy_of_a_call(machine: SimulatedDevice) -> None:
    """300 W all the time: a call of 200 us is 60 mJ."""
    m = cuptiprof.bench(
        lambda: machine.sim.launch("k", duration_ns=200_000), device=machine, stop=Count(50), energy=True
    )
    assert m.energy_per_call == pytest.approx(0.060, rel=0.03) and "energy" in str(m) and "mJ" in str(m)
    assert Measurement.from_dict(m.to_dict()).energy_per_call == m.energy_per_call
    plain = cuptiprof.bench(lambda: machine.sim.launch("k", duration_ns=200_000), device=machine, stop=Count(50))
    assert plain.energy_per_call != plain.energy_per_call and plain.to_dict()["energy_per_call"] is None


def test_energy_that_is_not_known_is_said(machine: SimulatedDevice) -> None:
    def work() -> None:
        machine.sim.launch("k", duration_ns=200_000)

    short = cuptiprof.bench(work, device=machine, stop=Count(50), energy=True, max_seconds=0.2)
    assert short.to_dict()["energy_per_call"] is None
    assert any("moved" in n and "max_seconds" in n for n in short.notes), short.notes
    machine.clocks.counts_energy = False
    none = cuptiprof.bench(work, device=machine, stop=Count(50), energy=True)
    assert any("energy is not known: the GPU does not count it" in n for n in none.notes)
    host = cuptiprof.bench(lambda: None, device="host", energy=True, memory=True, stop=Count(20))
    assert any("no GPU" in n for n in host.notes) and any("PyTorch's allocator" in n for n in host.notes)
    assert NoClocks("x").energy_j() is None


def test_set_up_is_in_the_energy_and_that_is_said(machine: SimulatedDevice) -> None:
    def setup() -> None:
        machine.sim.launch("s", duration_ns=200_000)

    work = lambda: machine.sim.launch("k", duration_ns=200_000)  # noqa: E731
    m = cuptiprof.bench(work, setup=setup, device=machine, stop=Count(50), energy=True)
    assert m.energy_per_call == pytest.approx(0.120, rel=0.03) and "its set-up is in its energy" in m.notes


def test_peak_memory_is_what_a_call_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's three calls, in this order: what was there before is no part of it, nor the peak of an earlier call."""
    from cuptiprof.device.torch_gpu import TorchGpu

    held, peak, said = 1000, 9000, []

    def reset() -> None:
        nonlocal peak
        said.append("reset")
        peak = held

    def work() -> None:
        nonlocal peak
        said.append("call")
        peak = max(peak, held + 512)

    cuda = SimpleNamespace(
        memory_allocated=lambda: held, max_memory_allocated=lambda: peak, reset_peak_memory_stats=reset
    )
    gpu = TorchGpu.__new__(TorchGpu)
    gpu._torch = SimpleNamespace(cuda=cuda)
    gpu.synchronize = lambda: said.append("sync")
    assert gpu.peak_memory(work) == 512 and said == ["sync", "reset", "call", "sync"]


def test_tables_and_files_have_them(
    machine: SimulatedDevice, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bench_a.py").write_text(
        "import cuptiprof\nfrom cuptiprof.sim.sim_device import SimDevice\n"
        "@cuptiprof.benchmark\ndef a():\n    return lambda: SimDevice().launch('k', duration_ns=200_000)\n"
    )
    out = str(tmp_path / "out.jsonl")
    assert main(["bench", str(tmp_path / "bench_a.py"), "--device", "sim", "--energy", "--json", out]) == 0
    shown = capsys.readouterr().out
    assert "Energy" in shown and "mJ" in shown
    assert main(["bench", out, "--format", "json"]) == 0
    text = capsys.readouterr().out
    assert '"sm_mhz": 1980.0' in text and '"energy_joules": 0.06' in text
    m = cuptiprof.bench(lambda: machine.sim.launch("k"), device=machine, stop=Count(20)).to_dict()
    assert Measurement.from_dict({**m, "peak_memory": 1 << 20}).peak_memory == 1 << 20
    assert "peak memory" in str(Measurement.from_dict({**m, "peak_memory": 1 << 20}))
    for wrong in ({"peak_memory": -1}, {"peak_memory": 0.5}, {"energy_per_call": -1.0}, {"energy_per_call": "much"}):
        with pytest.raises(ResultError):
            Measurement.from_dict({**m, **wrong})


def test_of_several_processes_the_energy_is_the_mean_and_the_memory_the_most(machine: SimulatedDevice) -> None:
    m = cuptiprof.bench(lambda: machine.sim.launch("k", duration_ns=50_000), device=machine, stop=Count(20), name="k")

    def results(energy: float | None, peak: int | None) -> Results:
        other = Measurement.from_dict({**m.to_dict(), "energy_per_call": energy, "peak_memory": peak})
        return Results((Row("k", measurement=other),), m.environment)

    pooled = pool([results(1.0, 10), results(2.0, 30), results(None, None)]).rows[0].measurement
    assert pooled is not None and pooled.energy_per_call == 1.5 and pooled.peak_memory == 30
    assert len(pooled.sm_hz) == len(pooled.samples)
    none = pool([results(None, None), results(None, None)]).rows[0].measurement
    assert none is not None and none.peak_memory is None and none.energy_per_call != none.energy_per_call


@pytest.mark.parametrize("clock", ["bse", "0", "-3", "1.5"])
def test_no_clock_on_the_command_line(clock: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["bench", "x.py", f"--lock-clocks={clock}"])
    assert caught.value.code == 2 and "no clock: base, max or MHz" in capsys.readouterr().err
