"""The thread that reads the system beside the kernels, and the rows it has made."""

from __future__ import annotations

import os
import threading
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np

from cuptiprof import _core
from cuptiprof.data.system_counters import HOST, SYSTEM_COUNTERS
from cuptiprof.data.tables import Strings, Table
from cuptiprof.device.host_counters import HostCounters
from cuptiprof.device.nvml_counters import NvmlGpu, nvml_gpus
from cuptiprof.device.nvml_events import NvmlEvents
from cuptiprof.errors import DeviceError, SessionError
from cuptiprof.io.at_exit import before_exit

_PATIENCE = 2.0  # s for a thread's last round
_SLOW_S = 1.0  # between two readings of PCIe, which take 40 ms a GPU
_WAIT_MS = 100  # for an XID, at a time: so long the end may take
_SHARE = 32  # of the budget
_ROW = 21  # bytes
_LATEST = 2_000  # readings among which the last of each counter is looked for
_NAMES = list(SYSTEM_COUNTERS)
_NUMBERS = {name: number for number, name in enumerate(_NAMES)}


@dataclass(frozen=True)
class TakenSystem:
    """Rows of one cycle, by column, and what is said of them (``metadata["system"]``)."""

    rows: dict[str, Any]
    facts: dict[str, Any]

    def table(self, strings: Strings, ordinals: dict[str, int]) -> Table:
        """As ``system_samples``. `ordinals`: UUIDs of the GPUs that the program sees, by which they are called and others left out;
        empty: it has none, or has not asked, and they are called as NVML numbers them."""
        device = self.rows["device"]
        wanted = np.ones(len(device), bool)
        if ordinals:
            called = {gpu["index"]: ordinals.get(_plain(gpu["uuid"]), HOST - 1) for gpu in self.facts["gpus"]}
            called[HOST] = HOST
            device = np.array([called[i] for i in device.tolist()], np.int32) if len(device) else device
            wanted = device >= HOST
        codes = np.array([strings.code(name) for name in _NAMES], np.uint32)
        columns = {"timestamp": self.rows["timestamp"], "value": self.rows["value"], "device": device,
                   "counter": codes[self.rows["counter"]]}  # fmt: skip
        return Table.from_columns(
            "system_samples", {k: v[wanted] for k, v in columns.items()}, strings, rows=int(wanted.sum())
        )


def _plain(uuid: str) -> str:
    """NVML's "GPU-6b2c...-..." as the driver's 32 digits."""
    return uuid.removeprefix("GPU-").replace("-", "")


class SystemSampler:
    """Runs from entering to leaving; may be left twice, and before it was entered. It never raises into the program.

    Args:
        load: gives the module that answers as ``pynvml`` does; DeviceError: there are no readings of GPUs, which is noted.
        interval: ns between two readings.
        budget: of the session, bytes; a part of it holds rows, the latest.
        simulated: the GPUs are a model's.
    """

    def __init__(self, load: Callable[[], Any], interval: int, budget: int, *, simulated: bool) -> None:
        self._interval = interval / 1e9
        self._most = max(budget // _SHARE // _ROW, 1000)
        self._simulated = simulated
        self._lock = threading.Lock()
        self._time, self._value, self._device, self._counter = array("q"), array("d"), array("i"), array("B")
        self._dropped = 0
        self._late = 0  # readings that were due while the one before was still made
        self._failed = 0
        self._note = ""
        self._gpus: list[NvmlGpu] = []
        self._events: NvmlEvents | None = None
        self._host = HostCounters()
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []
        self._pid = os.getpid()
        nvml = None
        try:
            nvml = load()
        except DeviceError as e:
            self._note = e.message
        if nvml is not None:
            self._gpus = nvml_gpus(nvml)
            self._note = "" if self._gpus else "NVML names no GPU that can be read"
        self._nvml = nvml

    @property
    def has_gpus(self) -> bool:
        """Whether NVML reads any GPU."""
        return bool(self._gpus)

    def __enter__(self) -> SystemSampler:
        if self._gpus:
            self._events = NvmlEvents(self._nvml, self._gpus)
        self._begin("cuptiprof-sys", lambda: self._run(self._read, self._interval))
        if self._gpus:
            self._begin("cuptiprof-pcie", lambda: self._run(self._read_slowly, max(self._interval, _SLOW_S)))
        if self._events is not None and self._events.are_there:
            self._begin("cuptiprof-xid", self._wait_for_xids)
        before_exit(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.end()

    def _begin(self, name: str, what: Callable[[], None]) -> None:
        thread = threading.Thread(target=what, name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError as e:
            self.end()
            raise SessionError(
                f"cannot read the system: {e}", hint="the limit on threads (ulimit -u) is reached"
            ) from None
        self._threads.append(thread)

    def end(self) -> None:
        """The threads end; what they read stays."""
        if self._pid != os.getpid():
            return
        self._stopped.set()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(_PATIENCE)
        if self._events is not None and not any(thread.is_alive() for thread in self._threads):
            self._events.close()

    def rows(self, until: int | None = None) -> TakenSystem:
        """A copy of what was read until then (ns of the run clock)."""
        with self._lock:
            columns = (
                ("timestamp", self._time),
                ("value", self._value),
                ("device", self._device),
                ("counter", self._counter),
            )
            rows = {name: np.array(column) for name, column in columns}
        if until is not None:
            rows = {name: column[rows["timestamp"] <= until] for name, column in rows.items()}
        refused = {f"GPU {gpu.index}: {name}": why for gpu in self._gpus for name, why in dict(gpu.refused).items()}
        facts = {
            "interval_ns": round(self._interval * 1e9),
            "simulated_gpus": self._simulated,
            "missed": self._late + self._failed + self._host.missed + sum(gpu.missed for gpu in self._gpus),
            "dropped": self._dropped,
            "gpus": [{"index": gpu.index, "uuid": gpu.uuid} for gpu in self._gpus],
            "refused": refused,
            "note": self._note,
        }
        return TakenSystem(rows, facts)

    def latest(self) -> list[tuple[int, str, float]]:
        """The latest readings: device (as NVML numbers it; -1: the host's), name of the counter, value in its unit; none yet: empty.
        What was read longest ago is left out."""
        with self._lock:
            which = zip(self._device[-_LATEST:], self._counter[-_LATEST:], strict=True)
            last = dict(zip(which, self._value[-_LATEST:], strict=True))
        return [(device, _NAMES[counter], value) for (device, counter), value in last.items()]

    def uuids(self) -> dict[int, str]:
        """Of the GPUs, by NVML's numbers, as the driver has them."""
        return {gpu.index: _plain(gpu.uuid) for gpu in self._gpus}

    def forget(self, until: int) -> None:
        """What was read until then belongs to no cycle that is to come."""
        with self._lock:
            kept = np.array(self._time) > until
            for column in (self._time, self._value, self._device, self._counter):
                rest = np.array(column)[kept]
                del column[:]
                column.frombytes(rest.tobytes())

    def _run(self, read: Callable[[], None], period: float) -> None:
        due = _core.now_ns() / 1e9
        while True:
            try:
                read()
            except Exception:  # the program is not to hear of it
                self._failed += 1
            now = _core.now_ns() / 1e9
            behind = int((now - due) / period) if now > due else 0
            self._late += behind
            due += period * (behind + 1)
            if self._stopped.wait(max(due - now, 0.0)):
                return

    def _read(self) -> None:
        for gpu in self._gpus:
            now = _core.now_ns()
            self._put(now, gpu.index, gpu.read(now))
        now = _core.now_ns()
        self._put(now, HOST, self._host.read(now))

    def _read_slowly(self) -> None:
        for gpu in self._gpus:
            if self._stopped.is_set():
                return
            self._put(_core.now_ns(), gpu.index, gpu.read_slowly())

    def _wait_for_xids(self) -> None:
        while not self._stopped.is_set() and self._events is not None:
            began = _core.now_ns()
            try:
                event = self._events.wait(_WAIT_MS)
            except Exception:  # it is tried again, less often
                self._failed += 1
                self._stopped.wait(_SLOW_S)
                continue
            now = _core.now_ns()
            if event is not None:
                self._put(now, event[0], [("xid", event[1])])
            elif now - began < _WAIT_MS * 1_000_000:  # NVML may come back before its time
                self._stopped.wait((_WAIT_MS * 1_000_000 - now + began) / 1e9)

    def _put(self, now: int, device: int, readings: Iterable[tuple[str, float]]) -> None:
        found = list(readings)
        with self._lock:
            for name, value in found:
                self._time.append(now)
                self._value.append(float(value))
                self._device.append(device)
                self._counter.append(_NUMBERS[name])
            if len(self._time) > self._most:
                gone = len(self._time) // 2
                self._dropped += gone
                for column in (self._time, self._value, self._device, self._counter):
                    del column[:gone]
