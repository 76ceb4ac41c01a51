"""``profile(system=...)``: the thread that reads the system beside the kernels."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuptiprof
from cuptiprof.data.clock_state import ClockState
from cuptiprof.data.system_counters import SYSTEM_COUNTERS
from cuptiprof.data.tables import Strings
from cuptiprof.device.devices import SimulatedDevice
from cuptiprof.device.host_counters import HostCounters
from cuptiprof.errors import DeviceError, SessionError
from cuptiprof.session.system_sampler import SystemSampler, TakenSystem
from cuptiprof.sim.sim_device import Fault


@pytest.fixture
def device() -> SimulatedDevice:
    return SimulatedDevice()


def wait_for(condition: Any, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def values(result: cuptiprof.Result, counter: str) -> list[float]:
    table = result.system_samples
    return table["value"][table["counter"] == counter].tolist()  # type: ignore[no-any-return]


def threads() -> set[str]:
    return {t.name for t in threading.enumerate()}


def test_readings_of_gpu_and_host(device: SimulatedDevice, tmp_path: Path) -> None:
    device.system.memory_used, device.system.ecc, device.system.xids = 5 << 30, [7, 1], [79]
    session = cuptiprof.profile(device=device, system="10ms").start()
    assert {"cuptiprof-sys", "cuptiprof-pcie", "cuptiprof-xid"} <= threads()
    wait_for(lambda: len(values(session.snapshot(), "power")) >= 3)
    device.clocks.at(device.sim.now(), ClockState(990.0, 2619.0, 88.0, 500.0, 0x40))
    wait_for(lambda: 990.0 in values(session.snapshot(), "sm_clock") and values(session.snapshot(), "xid"))
    result = session.stop()
    assert not {"cuptiprof-sys", "cuptiprof-pcie", "cuptiprof-xid"} & threads()
    assert set(values(result, "power")) == {300.0, 500.0} and set(values(result, "clock_reasons")) == {0.0, 64.0}
    assert set(values(result, "memory_used")) == {float(5 << 30)}
    assert values(result, "xid") == [79.0]
    assert set(values(result, "ecc_corrected")) == {7.0} and set(values(result, "ecc_uncorrected")) == {1.0}
    assert min(values(result, "resident")) > 1e6 and max(values(result, "process_cpu")) > 0
    table = result.system_samples
    assert set(table["counter"]) <= set(SYSTEM_COUNTERS)
    hosts = np.isin(
        table["counter"], ["process_cpu", "machine_cpu", "resident", "context_switches", "disk_read", "disk_written"]
    )
    assert (table["device"] == np.where(hosts, -1, 0)).all()
    start, stop = result.metadata["start_time_ns"], result.metadata["stop_time_ns"]
    assert table["timestamp"].min() >= start and table["timestamp"].max() <= stop
    facts = result.metadata["system"]
    assert (
        facts["interval_ns"] == 10_000_000
        and facts["simulated_gpus"]
        and facts["refused"]["GPU 0: fan"] == "Not Supported"
    )
    result.save(tmp_path / "run")
    again = cuptiprof.open(tmp_path / "run")
    assert list(again.system_samples.rows()) == list(table.rows()) and again.metadata["system"] == facts


def test_nothing_is_read_unless_asked(device: SimulatedDevice) -> None:
    with cuptiprof.profile(device=device) as session:
        assert "cuptiprof-sys" not in threads()
    assert not len(session.result().system_samples) and "system" not in session.result().metadata


@pytest.mark.parametrize("bad", ["often", "1ms", "11s", 0, -1, float("nan")])
def test_intervals_that_are_none(bad: Any) -> None:
    with pytest.raises(SessionError, match="system=") as e:
        cuptiprof.profile(device="sim", system=bad)
    assert "50ms" in e.value.hint


def test_cycles_have_their_own_rows(device: SimulatedDevice) -> None:
    results: list[cuptiprof.Result] = []
    schedule = cuptiprof.schedule(wait=1, warmup=1, active=1, repeat=2)
    session = cuptiprof.profile(
        device=device, system="10ms", schedule=schedule, on_ready=lambda s: results.append(s.result())
    )
    with session:
        for _ in range(6):
            time.sleep(0.05)
            session.step()
    assert len(results) == 2
    for result in results:
        (step,) = [m for m in result.markers.rows() if m["category"] == "step"]
        times = result.system_samples["timestamp"]
        assert (
            len(times) and times.min() >= step["start"] - 10_000_000 and times.max() <= result.metadata["stop_time_ns"]
        )
    assert results[0].system_samples["timestamp"].max() < results[1].system_samples["timestamp"].min()


def test_a_machine_without_nvml_still_tells_of_the_host() -> None:
    def load() -> Any:
        raise DeviceError("nvidia-ml-py is not installed")

    with SystemSampler(load, 10_000_000, 1 << 28, simulated=False) as sampler:
        assert "cuptiprof-pcie" not in threads()
        wait_for(lambda: len(sampler.rows().rows["value"]) > 10)
    taken = sampler.rows()
    assert taken.facts["note"] == "nvidia-ml-py is not installed" and set(taken.rows["device"].tolist()) == {-1}


def test_nvml_that_fails_throughout_stops_nobody(device: SimulatedDevice) -> None:
    device.system.errors = dict.fromkeys(
        ["nvmlDeviceGetPowerUsage", "nvmlDeviceGetMemoryInfo", "nvmlEventSetWait_v2", "nvmlDeviceGetTemperature"], 999
    )
    with cuptiprof.profile(device=device, system="10ms") as session:
        wait_for(lambda: len(values(session.snapshot(), "resident")) >= 3)
    result = session.result()
    assert not values(result, "power") and result.metadata["system"]["missed"] >= 9
    device.system.errors = {"nvmlDeviceGetCount": 999}
    with cuptiprof.profile(device=device, system="10ms") as session:
        pass
    assert "NVML names no GPU" in session.result().metadata["note"]


def test_rows_have_a_bound() -> None:
    def load() -> Any:
        raise DeviceError("none")

    with SystemSampler(load, 10_000_000, 1, simulated=False) as sampler:
        wait_for(lambda: sampler.rows().facts["dropped"] > 0, 60.0)
        assert len(sampler.rows().rows["value"]) <= 1000


def test_gpus_are_called_as_the_program_calls_them() -> None:
    rows = {"timestamp": np.arange(4), "value": np.arange(4.0), "device": np.array([0, 1, 2, -1], np.int32),
            "counter": np.zeros(4, np.uint8)}  # fmt: skip
    gpus = [{"index": i, "uuid": f"GPU-0000000{i}-0000-0000-0000-000000000000"} for i in range(3)]
    taken = TakenSystem(rows, {"gpus": gpus})
    seen = {f"0000000{i}000000000000000000000000": n for n, i in enumerate((2, 0))}
    assert taken.table(Strings(), seen)["device"].tolist() == [1, 0, -1]
    assert taken.table(Strings(), {})["device"].tolist() == [0, 1, 2, -1]


def test_a_forked_child_leaves_it_alone(device: SimulatedDevice) -> None:
    with cuptiprof.profile(device=device, system="10ms") as session:
        pid = os.fork()
        if pid == 0:
            session.__exit__(None, None, None)
            os._exit(0 if "cuptiprof-sys" not in threads() else 1)
        assert os.waitpid(pid, 0)[1] == 0
        assert "cuptiprof-sys" in threads()


def test_host_counters_of_another_proc(tmp_path: Path) -> None:
    def put(busy: int, idle: int, read: int) -> None:
        (tmp_path / "self").mkdir(exist_ok=True)
        (tmp_path / "stat").write_text(f"cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\ncpu0 ...\n")
        (tmp_path / "self/statm").write_text("100 25 5 1 0 10 0\n")
        (tmp_path / "self/io").write_text(f"rchar: 5\nread_bytes: {read}\nwrite_bytes: 0\n")

    host = HostCounters(tmp_path)
    put(100, 100, 1000)
    assert set(dict(host.read(10**9))) == {"resident"}
    put(130, 110, 5096)
    found = dict(host.read(3 * 10**9))
    assert found["machine_cpu"] == 75.0 and found["disk_read"] == 2048.0 and found["disk_written"] == 0.0
    assert found["resident"] == 25 * os.sysconf("SC_PAGE_SIZE")
    (tmp_path / "self/io").unlink()
    (tmp_path / "stat").write_text("nonsense")
    assert "machine_cpu" not in dict(host.read(4 * 10**9)) and host.missed == 2


def test_cupti_tells_where_nvml_does_not(device: SimulatedDevice, tmp_path: Path) -> None:
    device.system.errors = {"nvmlDeviceGetCount": 999}
    with cuptiprof.profile(device=device, system="10ms") as session:
        device.sim.environment(1, 1980, 2619, 4, 16, 0x4)
        device.sim.environment(1, 990, 2619, 4, 16, 0x40000000)  # reasons are not supported
        device.sim.environment(2, 61)
        device.sim.environment(3, 312_500, 700_000)
        device.sim.environment(4, 40)
        device.sim.environment(9, 1)  # no kind of CUPTI's
        wait_for(lambda: values(session.snapshot(), "resident"))
    result = session.result()
    found = {name: values(result, name) for name in set(result.system_samples["counter"])}
    assert {name: of for name, of in found.items() if SYSTEM_COUNTERS[name].name in _OF_CUPTI} == {
        "sm_clock": [1980, 990], "memory_clock": [2619] * 2, "pcie_generation": [4] * 2, "pcie_width": [16] * 2, "clock_reasons": [4],
        "temperature": [61], "power": [312.5], "power_limit": [700], "fan": [40],
    }  # fmt: skip
    assert result.losses["unknown_records"] == 1
    table = result.system_samples
    of_gpu = np.isin(table["counter"], list(_OF_CUPTI))
    assert (table["device"] == np.where(of_gpu, 0, -1)).all()
    start, stop = result.metadata["start_time_ns"], result.metadata["stop_time_ns"]
    assert table["timestamp"].min() >= start and table["timestamp"].max() <= stop
    assert result.metadata["system"]["source"] == "cupti" and "no readings" not in result.metadata.get("note", "")
    result.save(tmp_path / "run")
    assert list(cuptiprof.open(tmp_path / "run").system_samples.rows()) == list(table.rows())


_OF_CUPTI = {
    "sm_clock", "memory_clock", "pcie_generation", "pcie_width", "clock_reasons", "temperature", "power", "power_limit", "fan",
}  # fmt: skip


def test_cupti_is_not_asked_where_nvml_tells_or_refuses_it(device: SimulatedDevice) -> None:
    with cuptiprof.profile(device=device, system="10ms") as session:
        device.sim.environment(4, 40)
    assert not values(session.result(), "fan") and session.result().metadata["system"]["source"] == "nvml"
    device.system.errors = {"nvmlDeviceGetCount": 999}
    device.sim.inject(Fault.FAIL_CALL, "cuptiActivityEnable", a=27, b=3)  # devices, contexts and kernels come first
    try:
        with cuptiprof.profile(device=device, system="10ms", activities=["kernel"]) as session:
            device.sim.launch("gemm")
            device.sim.environment(4, 40)
    finally:
        device.sim.clear_faults()
    result = session.result()
    assert len(result.kernels) == 1 and not values(result, "fan")
    assert result.metadata["system"]["source"] == "" and "no readings of GPUs" in result.metadata["note"]
