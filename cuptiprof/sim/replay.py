"""A recorded torch.profiler trace, played through the simulated device.

Each recorded thread gets a real thread here, named and numbered as it was, and the threads take turns in recorded order:
every call becomes a simulated CUDA call with its own times, IDs, names and stream, every user annotation a real
``region``. What reaches the collector has gone all the way a real program's data goes.
"""

from __future__ import annotations

import ctypes
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from cuptiprof import _core
from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError
from cuptiprof.io.kineto import import_trace
from cuptiprof.regions.region import region
from cuptiprof.sim.replay_ops import Builder, Ops
from cuptiprof.sim.sim_device import SimDevice

_PR_SET_NAME = 15
_MAX_DEVICES = 1024  # a file may name any number


class ReplayStep(NamedTuple):
    """What one thread does at one time: play ops, or enter or leave a region."""

    at: int  # ns
    thread: int
    ops: Ops | None = None
    enter: str | None = None
    instance: int = 0


class _Turns:
    """Lets one thread at a time go on, in a fixed order."""

    def __init__(self, threads: list[int]) -> None:
        self._lock = threading.Lock()  # guards _failed and what is waited for
        self._wake = {t: threading.Semaphore(0) for t in set(threads)}
        self._order = iter(threads)
        self._failed = False
        self.done()

    def wait(self, thread: int) -> bool:
        """Until it is this thread's turn; False: another one failed."""
        self._wake[thread].acquire()
        return not self._failed

    def done(self) -> None:
        """Hand on to the next."""
        with self._lock:
            following = next(self._order, None)
        if following is not None:
            self._wake[following].release()

    def fail(self) -> None:
        with self._lock:
            self._failed = True
            for wake in self._wake.values():
                wake.release()


class TracePlayer:
    """Plays one trace: kernels, copies, sets, API calls, synchronisations and regions.

    Args:
        trace: path of a torch.profiler trace, or a Result.
        speed: 1 keeps the recorded pace, 2 is twice as fast, 0 is as fast as possible.

    Attributes:
        not_replayed: after :meth:`play`: what could not be played, counted by kind.

    Raises:
        ResultError: the trace cannot be read.
    """

    def __init__(self, trace: str | Result, *, speed: float = 0.0) -> None:
        self.result = trace if isinstance(trace, Result) else import_trace(trace)
        self.speed = speed
        self.not_replayed: Counter[str] = Counter()

    @property
    def chip(self) -> str:
        """The simulated chip nearest to the recorded one."""
        from cuptiprof.data.chips import BOARDS

        names = " ".join(self.result.devices["name"]) if len(self.result.devices) else ""
        return next((c for c in BOARDS if re.search(rf"\b{c}\b", names)), "H100")

    @property
    def devices(self) -> int:
        """How many GPUs the simulated machine needs.

        Raises:
            ResultError: more than a machine has.
        """
        columns = [("kernels", "device"), ("memcpys", "device"), ("memcpys", "dst_device"), ("memsets", "device")]
        ordinals = [self.result.tables[table].codes(column) for table, column in columns]
        needed = 1 + max((int(o.max()) for o in ordinals if len(o)), default=0)
        if needed > _MAX_DEVICES:
            raise ResultError(
                f"the trace names GPU {needed - 1}; {_MAX_DEVICES} can be simulated", hint="is the trace damaged?"
            )
        return needed

    def play(self, device: SimDevice) -> None:
        """Run everything; returns when the last call is made.

        Raises:
            DeviceError: the simulated device refused a call.
        """
        builder = Builder(self.result, device)
        ops = builder.build()
        self.not_replayed = builder.not_replayed
        jobs: dict[int, list[list[ReplayStep]]] = {}
        order: list[int] = []
        for step in self._steps(ops):
            if not order or order[-1] != step.thread:
                order.append(step.thread)
                jobs.setdefault(step.thread, []).append([])
            jobs[step.thread][-1].append(step)
        if not order:
            return
        turns = _Turns(order)
        workers = self._autograd_threads()
        errors: list[BaseException] = []
        origin, began = jobs[order[0]][0][0].at, time.perf_counter()

        def run(thread: int) -> None:
            try:
                if thread in workers:
                    ctypes.CDLL(None).prctl(_PR_SET_NAME, b"pt_autograd_0", 0, 0, 0)
                _core.set_thread_id(thread)
                device.set_thread(thread)
                opened: dict[int, Any] = {}
                waiting = False
                for turn in jobs[thread]:
                    if not turns.wait(thread):
                        return
                    if waiting:
                        device.advance(turn[0].at)  # after the others' last call, which may bear the same time
                        _core._backward_ends()
                    for step in turn:
                        self._pace(step.at - origin, began)
                        _play_step(device, step, opened)
                    # The trace does not say who called backward: as in its import, whoever has a region open meanwhile.
                    if waiting := bool(opened):
                        _core._backward_begins()
                    turns.done()
            except BaseException as e:
                errors.append(e)
                turns.fail()

        pool = [threading.Thread(target=run, args=(t,), name=f"replay-{t}") for t in jobs]
        for t in pool:
            t.start()
        for t in pool:
            t.join()
        if errors:
            raise errors[0]
        device.advance(int(max(ops["api_end"].max(), ops["gpu_end"].max())) if len(ops) else 0)

    def _pace(self, elapsed_ns: int, began: float) -> None:
        if self.speed > 0:
            delay = elapsed_ns / 1e9 / self.speed - (time.perf_counter() - began)
            if delay > 0:
                time.sleep(delay)

    def _autograd_threads(self) -> set[int]:
        operators = self.result.operators
        engine = np.array([s.startswith("autograd::") for s in operators.strings], bool)
        return set(operators.codes("thread")[engine[operators.codes("name")]].tolist()) if len(operators) else set()

    def _steps(self, ops: Ops) -> Iterator[ReplayStep]:
        """Everything in order of time; consecutive ops of a thread are one step unless the pace is to be kept."""
        regions = self.result.regions
        start, end = regions.codes("start").astype(np.int64), regions.codes("end").astype(np.int64)
        depth = regions.codes("depth").astype(np.int64)
        count, played = len(regions), len(ops)
        # At one instant: regions end, inner ones first; begin, outer ones first; those without length end; calls follow.
        kinds = (np.full(count, 1), np.where(end > start, 0, 2), np.full(played, 3))
        at = np.concatenate([start, end, ops["api_start"].astype(np.int64)])
        rank = np.concatenate(kinds)
        tie = np.concatenate([depth, -depth, np.arange(played)])
        thread = np.concatenate([regions.codes("thread"), regions.codes("thread"), ops["thread"]]).astype(np.int64)
        order = np.lexsort((tie, rank, at))
        is_op = order >= 2 * count
        names = regions["name"]
        joined = np.zeros(len(order), bool)
        if self.speed <= 0 and len(order):
            joined[1:] = is_op[1:] & is_op[:-1] & (thread[order[1:]] == thread[order[:-1]])
        starts = np.flatnonzero(~joined)
        for i, stop in zip(starts.tolist(), [*starts.tolist(), len(order)][1:], strict=True):
            event = int(order[i])
            when, who = int(at[event]), int(thread[event])
            if is_op[i]:
                first = event - 2 * count
                yield ReplayStep(when, who, ops=ops[first : first + stop - i])
            elif event < count:
                yield ReplayStep(when, who, enter=str(names[event]), instance=event)
            else:
                yield ReplayStep(when, who, instance=event - count)


def _play_step(device: SimDevice, step: ReplayStep, opened: dict[int, Any]) -> None:
    device.advance(step.at)
    if step.ops is not None:
        device.run(step.ops)
    elif step.enter is not None:
        opened[step.instance] = region(step.enter)
        opened[step.instance].__enter__()
    else:
        opened.pop(step.instance).__exit__(None, None, None)
