"""The numbers of a session that runs, as readings of the metrics in the list. What is a counter there never goes back."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping

from cuptiprof import _core
from cuptiprof.analysis.trees.region_tree import NO_REGION
from cuptiprof.data.enums import MEMCPY_KINDS
from cuptiprof.data.result import Losses
from cuptiprof.job.launcher import place_in_job, process_group
from cuptiprof.publish.label_text import kernel_label, region_label
from cuptiprof.publish.published_metrics import METRICS, OF_THE_SYSTEM, MetricReading
from cuptiprof.publish.step_times import StepTimes
from cuptiprof.text.names import printable
from cuptiprof.version import __version__
from cuptiprof.watch.live_figures import LiveSubject

MOST_NAMES = 50
"""Kernels, and regions, that get series of their own: those which are among so many with the longest GPU time at any look."""
ROOM = 200
"""Series that names can have in a session, of kernels and of regions each; the rest is ``(other names)``."""
_STATES = ("idle", "armed", "running", "paused", "stopped")
_SHORTEST = 1.0  # s over which the GPU is busy or not

Readings = Mapping[str, list[MetricReading]]
"""By name of the metric; those of histograms are in ``SessionReadings.steps``."""


SystemNow = Callable[[], Iterable[tuple[int, str, float]]]
"""The latest readings of the system: GPU, counter of ``system_samples``, value in its unit."""


class SessionReadings:
    """Asks a native session that was made with ``live=True``; on any thread.

    Args:
        system: None: the system is not read.

    Attributes:
        steps: its steps.
        labels: those that all its readings have: ``rank`` and ``host`` in a job.
        local_rank: among the ranks of this machine; 0 where there are none.
    """

    def __init__(self, session: _core.Session, subject: LiveSubject, system: SystemNow | None = None) -> None:
        self.steps = StepTimes()
        place = place_in_job(os.environ) or process_group()
        self.labels = {"rank": str(place["rank"]), "host": socket.gethostname()} if "rank" in place else {}
        self.local_rank: int = place.get("local_rank", 0)
        self._session = session
        self._subject = subject
        self._system = system
        self._lock = threading.Lock()
        self._began = time.time()
        self._marked = time.monotonic()
        self._marked_busy: dict[int, int] = {}
        self._ratios: dict[int, float] = {}

    def read(self) -> Readings:
        """What there is now."""
        with self._lock:
            return self._read()

    def _read(self) -> Readings:
        session = self._session
        sums = session.standing_sums(MOST_NAMES, ROOM)
        counts = session.counts()
        busy: dict[int, int] = sums["busy_ns"]
        self._look_at(busy)
        kernels = _merged((kernel_label(name), of_all) for name, of_all, _ in sums["kernels"])
        regions = _merged((region_label(name, none=NO_REGION), of_all) for name, of_all, _ in sums["regions"])
        copies = {MEMCPY_KINDS.get(kind, "Unknown"): of_all for kind, of_all, _ in sums["copies"]}
        sets, _ = sums["sets"]
        facts = {
            "version": __version__,
            "device": self._subject.device,
            "simulated": str(self._subject.simulated).lower(),
            "program": printable(
                os.path.basename(str((getattr(sys, "argv", None) or [""])[0]))
            ),  # its arguments hold passwords
            "pid": str(os.getpid()),
        }
        losses = {name: n for name, n in session.losses() if name not in Losses.NOT_A_LOSS}
        readings = {
            "cuptiprof.session": [MetricReading(self.labels | facts, 1)],
            "cuptiprof.session.state": self._of("state", {state: int(state == session.state) for state in _STATES}),
            "cuptiprof.session.start.time": self._one(self._began),
            "cuptiprof.gpu.busy": self._of("gpu", self._ratios),
            "cuptiprof.gpu.busy.time": self._of("gpu", {device: ns / 1e9 for device, ns in busy.items()}),
            "cuptiprof.launches": self._one(counts["launches"]),
            "cuptiprof.kernels": self._of("kernel", {name: count for name, (count, _, _) in kernels.items()}),
            "cuptiprof.kernel.time": self._of("kernel", {name: ns / 1e9 for name, (_, _, ns) in kernels.items()}),
            "cuptiprof.region.kernels": self._of("region", {name: count for name, (count, _, _) in regions.items()}),
            "cuptiprof.region.time": self._of("region", {name: ns / 1e9 for name, (_, _, ns) in regions.items()}),
            "cuptiprof.copies": self._of("direction", {kind: count for kind, (count, _, _) in copies.items()}),
            "cuptiprof.copy.size": self._of("direction", {kind: size for kind, (_, size, _) in copies.items()}),
            "cuptiprof.copy.time": self._of("direction", {kind: ns / 1e9 for kind, (_, _, ns) in copies.items()}),
            "cuptiprof.sets": self._one(sets[0]),
            "cuptiprof.set.size": self._one(sets[1]),
            "cuptiprof.set.time": self._one(sets[2] / 1e9),
            "cuptiprof.memory.allocated": self._one(sums["allocated"]) if sums["allocations"] else [],
            "cuptiprof.losses": self._of("loss", losses),
            "cuptiprof.missed.rows": self._one(sums["missed"]),
            **self._of_the_system(),
            "cuptiprof.kept": self._one(counts["live_bytes"]),
            "cuptiprof.budget": self._one(self._subject.budget_bytes),
        }
        assert readings.keys() == {metric.name for metric in METRICS if metric.kind != "histogram"}
        return readings

    def _of_the_system(self) -> dict[str, list[MetricReading]]:
        found: dict[str, list[MetricReading]] = {name: [] for name, _ in OF_THE_SYSTEM.values()}
        for gpu, counter, value in self._system() if self._system is not None else ():
            if counter in OF_THE_SYSTEM:
                name, factor = OF_THE_SYSTEM[counter]
                found[name] += self._of("gpu", {gpu: value * factor})
        return found

    def _one(self, value: float) -> list[MetricReading]:
        return [MetricReading(self.labels, value)]

    def _of(self, label: str, values: Mapping[str, float] | Mapping[int, float]) -> list[MetricReading]:
        return [MetricReading({**self.labels, label: str(of)}, value) for of, value in values.items()]

    def _look_at(self, busy: dict[int, int]) -> None:
        """Records come late, so that more than the interval can be of it; several may ask within a second."""
        now = time.monotonic()
        passed = now - self._marked
        if passed < _SHORTEST and self._ratios.keys() == busy.keys():
            return
        self._ratios = {
            device: min((ns - self._marked_busy.get(device, 0)) / (1e9 * max(passed, 1e-3)), 1.0)
            for device, ns in busy.items()
        }
        self._marked, self._marked_busy = now, busy


def _merged(sums: Iterable[tuple[str, tuple[int, int, int]]]) -> dict[str, tuple[int, int, int]]:
    """What is called the same is one: a series may be there once."""
    found: dict[str, tuple[int, int, int]] = {}
    for name, (count, size, ns) in sums:
        before = found.get(name, (0, 0, 0))
        found[name] = (before[0] + count, before[1] + size, before[2] + ns)
    return found
