"""``cuptiprof.recorder``: a session that never ends, and saves its last part when something happens."""

from __future__ import annotations

import contextlib
import math
import os
import queue
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from cuptiprof.data.result import Result
from cuptiprof.device.devices import Device
from cuptiprof.errors import CuptiprofError, SessionError
from cuptiprof.flight_recorder.beside_dump import dump_beside
from cuptiprof.flight_recorder.collection_gate import Gate
from cuptiprof.flight_recorder.cost_bound import CostBound
from cuptiprof.flight_recorder.cost_meter import CostMeter
from cuptiprof.flight_recorder.figures import RecorderFigures
from cuptiprof.flight_recorder.metric_trigger import MetricTrigger
from cuptiprof.flight_recorder.snapshot_files import SnapshotFiles
from cuptiprof.flight_recorder.triggers import Fire, Trigger
from cuptiprof.flight_recorder.window import last_part
from cuptiprof.io.at_exit import before_exit
from cuptiprof.session.profile import profile
from cuptiprof.session.sources import SourcesArgument
from cuptiprof.watch.live_figures import LiveFigures

if TYPE_CHECKING:
    from cuptiprof.publish.publisher import Publisher

_LOOK = 0.25  # s between looks of triggers that must look for themselves
_PATIENCE = 30.0  # s that somebody waits for a snapshot
_ACTIVITIES = ("kernel", "memcpy", "memset")


@dataclass
class RecorderCounts:
    """What became of triggers.

    Attributes:
        fired: how often one asked, while the recorder ran.
        saved: snapshots written.
        too_soon: of those that asked, within ``at_most_every`` of the last snapshot.
        failed: snapshots that could not be written; ``error`` says why the last one was not.
        windows: how often collection was paused to stay below ``max_overhead_pct``.
    """

    fired: int = 0
    saved: int = 0
    too_soon: int = 0
    failed: int = 0
    error: str = ""
    windows: int = 0


@dataclass
class _Asked:
    reason: str
    always: bool = False  # not "too soon"
    path: Path | None = None
    error: CuptiprofError | None = None
    done: threading.Event = field(default_factory=threading.Event)


def _trigger(given: Trigger | str) -> Trigger:
    if isinstance(given, Trigger):
        return given
    if isinstance(given, str):
        return MetricTrigger(given)
    raise SessionError(f"recorder(on=): {given!r} is no trigger", hint='SlowStep(), OnSignal(), "gpu_busy<50%", ...')


class recorder:
    """Keeps the last seconds of GPU activity in memory, and saves them when a trigger fires: a context manager, or ``start()`` and ``stop()``.

    A session of the ordinary kind (``cuptiprof.profile``) that keeps the latest rows; a snapshot is a copy of them, for which
    nothing pauses. There can be one session or recorder in a process.

    Args:
        seconds: of the past in a snapshot; None: all that the budget holds.
        steps: the last so many steps (``recorder.step()``) instead, or as well: the shorter of both.
        budget: memory for what is kept. A snapshot takes as much again while it is written.
        on: triggers (``cuptiprof.flight_recorder.triggers``), or texts such as "gpu_busy<50% for 10s" (``cuptiprof.flight_recorder.metric_trigger``);
            ``trigger()`` works without any.
        folder: where snapshots go.
        most: how many are kept there.
        at_most_every: s between two snapshots; who asks sooner is counted and gets none.
        max_overhead_pct: what recording may cost, CPU time in percent of the time by the clock; when it would cost more it goes on in windows of about
            a second. None: no bound. What the cost is made of: ``overhead()``. Snapshots are asked for, and do not count.
        launch_ns: what recording adds to a launch, as measured by you (``python -m benchmarks.overhead``); None: what our own part of it takes,
            measured at the start. CUPTI's part cannot be told from within.
        device, activities, sources, publish: as of ``cuptiprof.profile``; activities are kernels, copies and sets only by default.

    Attributes:
        counts: what became of the triggers.

    Raises (on start):
        As ``cuptiprof.profile``; ResultError: the folder cannot be made.
    """

    def __init__(
        self,
        *,
        seconds: float | None = 30.0,
        steps: int | None = None,
        budget: int | str = "64 MB",
        on: Iterable[Trigger | str] = (),
        folder: str | os.PathLike[str] = "cuptiprof-snapshots",
        most: int = 20,
        at_most_every: float = 10.0,
        max_overhead_pct: float | None = None,
        launch_ns: float | None = None,
        device: str | Device | None = None,
        activities: Iterable[str] = _ACTIVITIES,
        sources: SourcesArgument = None,
        publish: Publisher | Iterable[Publisher] | None = None,
    ) -> None:
        if seconds is not None and not seconds > 0:
            raise SessionError(f"recorder(seconds={seconds!r})", hint="more than 0, or None")
        if most < 1 or (steps is not None and steps < 1):
            raise SessionError("recorder(most=, steps=) are at least 1")
        if max_overhead_pct is not None and not 0 < max_overhead_pct < math.inf:
            raise SessionError(
                f"recorder(max_overhead_pct={max_overhead_pct!r})", hint="percent of one CPU, more than 0, or None"
            )
        if launch_ns is not None and not 0 <= launch_ns < math.inf:
            raise SessionError(f"recorder(launch_ns={launch_ns!r})", hint="ns, 0 at least, or None")
        self._seconds, self._steps = seconds, steps
        self._max_overhead_pct, self._launch_ns = max_overhead_pct, launch_ns
        self._at_most_every = at_most_every
        self._folder, self._most = folder, most
        self._triggers = tuple(map(_trigger, [on] if isinstance(on, str) else on))
        needs = frozenset[str]().union(*(trigger.needs for trigger in self._triggers))
        activities = tuple(activities)
        if "memory" not in activities and any(
            t.metric == "memory" for t in self._triggers if isinstance(t, MetricTrigger)
        ):
            raise SessionError(
                'a trigger on "memory" without allocations',
                hint=f"recorder(activities={[*activities, 'memory']}), or system.memory_used, of all processes",
            )
        self._live: LiveFigures | None = None
        self._session = profile(
            device=device,
            activities=activities,
            sources=sources,
            budget=budget,
            keep="latest",
            on_live=self._take_live if "live" in needs else None,
            system="1s" if "system" in needs else False,
            publish=publish,
        )
        self._session._ages_texts = True
        self._asked: queue.SimpleQueue[_Asked | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._armed: list[Trigger] = []
        self._pid = 0
        self._gate = Gate(self._session)
        self._bound: CostBound | None = None
        self.counts = RecorderCounts()

    def start(self) -> recorder:
        """Begin. See the class for errors."""
        self._files = SnapshotFiles(self._folder, self._most)
        self._session.start()
        try:
            self._pid = os.getpid()
            self._saved_at = float("-inf")
            self._step_at = time.perf_counter_ns()
            self._step_ns: int | None = None
            self._looked = (time.perf_counter(), 0)
            self._meter = CostMeter(self._launch_ns)
            if self._max_overhead_pct is not None:
                self._bound = CostBound(self._max_overhead_pct / 100, time.perf_counter())
            self._thread = threading.Thread(target=self._run, name="cuptiprof-rcrd", daemon=True)
            self._thread.start()
            before_exit(self)
            for trigger in self._triggers:
                trigger.arm(self._fire_of(trigger))
                self._armed.append(trigger)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> Result:
        """End; what was asked for before is written.

        Returns:
            What the recorder still held, cut to its window.
        """
        while self._armed:
            self._armed.pop().disarm()
        self.end()
        return self._last_part(self._session.stop())

    def _last_part(self, result: Result) -> Result:
        if self._bound is not None:
            result.metadata["overhead"] = {"max_pct": self._max_overhead_pct, **self.overhead()}
        return last_part(result, seconds=self._seconds, steps=self._steps)

    def overhead(self) -> dict[str, float]:
        """What recording has cost since the start, so far as it can be measured from within.

        Returns:
            ``pct``: CPU time in percent of the time by the clock (one CPU is 100); ``launches_s``: launches times ``launch_ns``; ``decoder_s``: the CPU time of
            the thread that makes rows of records, ``recorder_s``: of the recorder's own without snapshots.
        """
        meter = self._meter
        return {"pct": meter.pct, "launches_s": meter.launches_s, "launch_ns": meter.launch_ns,
                "decoder_s": meter.decoder_s, "recorder_s": meter.recorder_s}  # fmt: skip

    def end(self) -> None:
        """End the thread; for whoever ends the interpreter."""
        thread = self._thread
        if thread is None or self._pid != os.getpid() or thread is threading.current_thread():
            return
        self._asked.put(None)
        thread.join()
        self._thread = None

    def step(self) -> None:
        """The end of a training step: marks it, and is what ``SlowStep`` looks at."""
        self._session.step()
        now = time.perf_counter_ns()
        self._step_ns, self._step_at = now - self._step_at, now
        for trigger in self._triggers:
            trigger.step(self._step_ns, self._fire_of(trigger))

    def trigger(self, reason: str = "asked") -> Path:
        """Save a snapshot now, whenever the last one was, and wait for it.

        Returns:
            The saved run's path.

        Raises:
            SessionError: not running; ResultError: it cannot be written; BudgetError: no memory for the copy.
        """
        asked = _Asked(reason, always=True)
        self._ask(asked, wait=True)
        if asked.error is not None:
            raise asked.error
        if asked.path is None:
            raise SessionError("the recorder does not run", hint="call start(), or use `with cuptiprof.recorder(...):`")
        return asked.path

    def __enter__(self) -> recorder:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._pid != os.getpid():
            return  # a forked child leaves the block
        if error is not None and isinstance(error, Exception) and any(t.must_wait for t in self._triggers):
            with contextlib.suppress(CuptiprofError):
                self.trigger(f"exception: {type(error).__name__}")
        if self._session.state != "stopped":
            self.stop()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing is collected inside (an evaluation, a checkpoint)."""
        with self._gate.closed_by_program():
            yield

    def _fire_of(self, trigger: Trigger) -> Fire:
        return lambda reason: self._ask(_Asked(reason), wait=trigger.must_wait)

    def _ask(self, asked: _Asked, *, wait: bool) -> None:
        """From anywhere: a signal handler, a thread of a trigger, the thread of the program."""
        thread = self._thread
        if thread is None or not thread.is_alive() or self._pid != os.getpid():
            return
        self._asked.put(asked)
        if wait and thread is not threading.current_thread():
            asked.done.wait(_PATIENCE)

    def _run(self) -> None:
        while True:
            try:
                asked = self._asked.get(timeout=_LOOK)
            except queue.Empty:
                self._look()
                continue
            if asked is None:
                return
            with self._meter.leaving_out():
                self._save(asked)
            asked.done.set()
            self._keep_bound()

    def _save(self, asked: _Asked) -> None:
        self.counts.fired += 1
        if not asked.always and time.monotonic() < self._saved_at + self._at_most_every:
            self.counts.too_soon += 1
            return
        self._saved_at = time.monotonic()
        try:
            taken = self._last_part(self._session.snapshot())
            asked.path = self._files.write(taken, asked.reason)
            try:
                dump_beside(asked.path)
            except Exception as e:  # torch's, or the disk's: the snapshot is there
                self.counts.error = f"no dump of collectives: {type(e).__name__}: {e}"
            self.counts.saved += 1
        except Exception as e:  # the program goes on
            asked.error = e if isinstance(e, CuptiprofError) else SessionError(f"{type(e).__name__}: {e}")
            self.counts.failed += 1
            self.counts.error = str(asked.error)

    def _look(self) -> None:
        native = self._session
        counts = native.counts()
        now, launches = time.perf_counter(), counts["launches"]
        then, before = self._looked
        self._looked = now, launches
        observed = self._gate.was_open_since(then)
        known = {
            "launches_per_second": (launches - before) / max(now - then, 1e-9) if observed else float("nan"),
            "step_seconds": float("nan") if self._step_ns is None else self._step_ns / 1e9,
            "lost": float(counts["lost"]),
            "bytes": float(counts["live_bytes"]),
        }
        figures = RecorderFigures(now, known, self._live, cache(self._session.system_now))
        for trigger in self._armed:
            try:
                trigger.look(figures, self._fire_of(trigger))
            except Exception as e:  # a condition of the user's
                self.counts.failed += 1
                self.counts.error = f"{type(trigger).__name__}: {type(e).__name__}: {e}"
        self._keep_bound()

    def _take_live(self, figures: LiveFigures) -> None:
        """Once a second, on the session's thread of live figures."""
        observed = self._gate.was_open_since(time.perf_counter() - figures.interval_s)
        self._live = figures if observed else None

    def _keep_bound(self) -> None:
        """On the recorder's thread: collection goes on or pauses, by what it has cost."""
        counts = self._session.counts()
        spent = self._meter.look(time.perf_counter(), counts["launches"], counts["decoder_ns"])
        if self._bound is None:
            return
        was = self._bound.is_open
        collects = self._bound.look(time.perf_counter(), spent, collecting=self._session.state == "running")
        if was != collects:
            self.counts.windows += was
            try:
                self._gate.set_open(collects)
            except CuptiprofError as e:  # the session ends
                self.counts.error = str(e)
