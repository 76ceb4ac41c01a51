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
from typing import Any

import numpy as np

from cuptiprof import _core, enums
from cuptiprof.region import region
from cuptiprof.result import Result
from cuptiprof.sim.device import DRIVER, OP_DTYPE, RUNTIME, Flag, Op, SimDevice
from cuptiprof.trace_import import import_trace

_PR_SET_NAME = 15
_CALLS = (
    (r"LaunchKernel", Op.KERNEL),
    (r"MemcpyPeer", Op.MEMCPY_PEER),
    (r"Memcpy", Op.MEMCPY),
    (r"Memset", Op.MEMSET),
)
_WORK = {"kernels": Op.KERNEL, "memcpys": Op.MEMCPY, "memsets": Op.MEMSET}
_SYNC_OPS = {"Context Sync": Op.SYNC_CONTEXT, "Stream Sync": Op.SYNC_STREAM, "Event Sync": Op.SYNC_EVENT}


class _Turns:
    """Lets one thread at a time go on, in a fixed order."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._now = 0
        self._failed = False

    def wait(self, turn: int) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._now == turn or self._failed)
            return not self._failed

    def done(self) -> None:
        with self._changed:
            self._now += 1
            self._changed.notify_all()

    def fail(self) -> None:
        with self._changed:
            self._failed = True
            self._changed.notify_all()


class TracePlayer:
    """Plays one trace.

    Args:
        trace: path of a torch.profiler trace, or a Result.
        speed: 1 keeps the recorded pace, 2 is twice as fast, 0 is as fast as possible.

    Raises:
        ResultError: the trace cannot be read.
    """

    def __init__(self, trace: str | Result, *, speed: float = 0.0) -> None:
        self.result = trace if isinstance(trace, Result) else import_trace(trace)
        self.speed = speed

    @property
    def chip(self) -> str:
        """The simulated chip nearest to the recorded one."""
        from cuptiprof.devices import CHIPS

        names = " ".join(self.result.devices["name"]) if len(self.result.devices) else ""
        return next((c for c in CHIPS if re.search(rf"\b{c}\b", names)), "H100")

    def play(self, device: SimDevice) -> None:
        """Run everything; returns when the last call is made.

        Raises:
            DeviceError: the simulated device refused a call.
        """
        ops, threads = self._ops(device)
        turns = self._turns(ops, threads)
        order = _Turns()
        errors: list[BaseException] = []
        jobs: dict[int, list[tuple[int, list[Any]]]] = {}
        for turn, (thread, work) in enumerate(turns):
            jobs.setdefault(thread, []).append((turn, work))
        workers = set(self._autograd_threads())
        origin = int(turns[0][1][0][0]) if turns else 0
        began = time.perf_counter()

        def run(thread: int) -> None:
            try:
                if thread in workers:
                    ctypes.CDLL(None).prctl(_PR_SET_NAME, b"pt_autograd_0", 0, 0, 0)
                _core.set_thread_id(thread)
                device.set_thread(thread)
                open_regions: dict[int, Any] = {}
                for turn, work in jobs[thread]:
                    if not order.wait(turn):
                        return
                    for at, action, payload in work:
                        if self.speed > 0:
                            delay = (at - origin) / 1e9 / self.speed - (time.perf_counter() - began)
                            if delay > 0:
                                time.sleep(delay)
                        device.advance(at)
                        if action == "ops":
                            device.run(payload)
                        elif action == "enter":
                            open_regions[payload[0]] = region(payload[1])
                            open_regions[payload[0]].__enter__()
                        else:
                            open_regions.pop(payload[0]).__exit__(None, None, None)
                    order.done()
            except BaseException as e:
                errors.append(e)
                order.fail()

        pool = [threading.Thread(target=run, args=(t,), name=f"replay-{t}") for t in jobs]
        for t in pool:
            t.start()
        for t in pool:
            t.join()
        if errors:
            raise errors[0]

    def _autograd_threads(self) -> list[int]:
        markers = self.result.markers
        names = markers["name"]
        return [
            int(t)
            for t in np.unique([t for t, n in zip(markers["thread"], names, strict=True) if n.startswith("autograd::")])
        ]

    def _ops(self, device: SimDevice) -> tuple[Any, Any]:
        """One op a call (with the GPU work it caused), and one for work whose call was not recorded; sorted by time."""
        r = self.result
        work = {int(c): (name, i) for name in _WORK for i, c in enumerate(r.tables[name]["correlation_id"])}
        extra: list[tuple[str, int]] = []
        seen: dict[int, int] = {}
        for name in _WORK:  # several pieces of work under one call (graphs): the first goes with the call
            for i, c in enumerate(r.tables[name]["correlation_id"]):
                if seen.setdefault(int(c), i) != i or work[int(c)] != (name, i):
                    extra.append((name, i))
        calls = r.api_calls
        syncs = {int(c): i for i, c in enumerate(r.synchronizations["correlation_id"])}
        ops = np.zeros(len(calls), OP_DTYPE)
        ops["size"] = OP_DTYPE.itemsize
        ops["kind"] = Op.API
        ops["flags"] = Flag.API_TIMES
        ops["domain"] = np.where(calls["domain"] == 1, DRIVER, RUNTIME)
        for field, column in (
            ("cbid", "cbid"), ("thread", "thread"), ("correlation", "correlation_id"), ("api_start", "start"),
            ("api_end", "end"), ("return_value", "return_value"),
        ):  # fmt: skip
            ops[field] = calls[column]
        names = calls["name"]
        for i in range(len(calls)):
            correlation = int(calls["correlation_id"][i])
            if correlation in work:
                self._fill(ops[i : i + 1], *work.pop(correlation), device)
            elif correlation in syncs:
                self._fill_sync(ops[i : i + 1], syncs.pop(correlation))
            else:
                # A call that should have caused work but did not (its record is missing, or a size of 0): the call alone.
                for pattern, kind in _CALLS:
                    if re.search(pattern, str(names[i])):
                        ops[i]["kind"] = kind
                        ops[i]["flags"] |= int(Flag.NO_RECORD)
                        break
        rest = [*work.values(), *extra]
        loose = np.zeros(len(rest), OP_DTYPE)
        loose["size"] = OP_DTYPE.itemsize
        loose["flags"] = Flag.NO_API
        for i, (name, row) in enumerate(rest):
            self._fill(loose[i : i + 1], name, row, device)
            loose[i]["api_start"] = loose[i]["gpu_start"]
            loose[i]["correlation"] = r.tables[name]["correlation_id"][row]
        # A NO_RECORD launch has nothing to reconcile with: it is not a loss of ours, so it is no launch either.
        missing = (ops["flags"] & int(Flag.NO_RECORD)) != 0
        ops["kind"][missing] = Op.API
        joined = np.concatenate([ops, loose])
        joined = joined[np.argsort(joined["api_start"], kind="stable")]
        return joined, joined["thread"]

    def _fill(self, op: Any, table: str, row: int, device: SimDevice) -> None:
        t = self.result.tables[table]
        op["kind"] = _WORK[table]
        op["flags"] |= int(Flag.GPU_TIMES)
        for field, column in (
            ("gpu_start", "start"),
            ("gpu_end", "end"),
            ("stream", "stream"),
            ("context", "context"),
        ):
            op[field] = t.codes(column)[row]
        op["device"] = 0
        op["graph_id"] = t.codes("graph_id")[row]
        op["graph_node_id"] = t.codes("graph_node_id")[row]
        if table == "kernels":
            configs = self.result.launch_configs
            c = int(t.codes("config")[row])
            op["name"] = device.name_address(self.result.kernels.strings[int(t.codes("name")[row])])
            op["grid"] = [configs.codes(f"grid_{a}")[c] for a in "xyz"]
            op["block"] = [configs.codes(f"block_{a}")[c] for a in "xyz"]
            for field in ("registers_per_thread", "static_shared_memory", "dynamic_shared_memory"):
                op[field] = configs.codes(field)[c]
            return
        op["bytes"] = t.codes("bytes")[row]
        if table == "memcpys":
            for field in ("copy_kind", "src_kind", "dst_kind"):
                op[field] = t.codes(field)[row]
        else:
            op["memory_kind"] = t.codes("memory_kind")[row]
            op["value"] = t.codes("value")[row]

    def _fill_sync(self, op: Any, row: int) -> None:
        t = self.result.synchronizations
        op["kind"] = _SYNC_OPS.get(enums.SYNC_KINDS.get(int(t["type"][row]), ""), Op.STREAM_WAIT_EVENT)
        op["flags"] |= int(Flag.GPU_TIMES)
        op["gpu_start"], op["gpu_end"] = t["start"][row], t["end"][row]
        stream = int(t["stream"][row])
        op["stream"] = 0 if stream == 0xFFFFFFFF else stream
        op["context"] = t["context"][row]

    def _turns(self, ops: Any, threads: Any) -> list[tuple[int, list[Any]]]:
        """[(thread, [(time, action, payload), ...]), ...]: stretches of one thread, in time order."""
        events: list[tuple[int, int, int, int, str, Any]] = []  # time, rank, tie, thread, action, payload
        regions = self.result.regions
        for row in regions.rows():
            thread, depth = row["thread"], row["depth"]
            # At one instant: leave inner regions first, enter outer ones first, and calls after entries.
            events.append((row["start"], 1, depth, thread, "enter", (row["instance"], row["name"])))
            events.append((row["end"], 0, -depth, thread, "exit", (row["instance"],)))
        for i, (start, thread) in enumerate(zip(ops["api_start"].tolist(), threads.tolist(), strict=True)):
            events.append((start, 2, i, thread, "ops", i))
        events.sort(key=lambda e: e[:3])
        turns: list[tuple[int, list[Any]]] = []
        batch: list[int] = []

        def close() -> None:
            if batch:
                turns[-1][1].append((int(ops["api_start"][batch[0]]), "ops", ops[batch]))
                batch.clear()

        for at, _, _, thread, action, payload in events:
            if not turns or turns[-1][0] != thread:
                close()
                turns.append((thread, []))
            if action == "ops":
                batch.append(payload)
                if self.speed > 0:
                    close()
                continue
            close()
            turns[-1][1].append((at, action, payload))
        close()
        return turns
