"""Streams captured into graphs on the simulated device, from this thread and another one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from cuptiprof.errors import DeviceError
from cuptiprof.sim.sim_device import Op, SimDevice

GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2
STREAM, OTHER = 41, 42


def begin(sim: SimDevice, graph: int = 5, stream: int = STREAM, **fields: int) -> None:
    sim.call(Op.GRAPH_BEGIN_CAPTURE, graph_id=graph, stream=stream, **fields)


def end(sim: SimDevice, graph: int = 5, stream: int = STREAM, **fields: int) -> None:
    sim.call(Op.GRAPH_END_CAPTURE, graph_id=graph, stream=stream, **fields)


def refused(code: int, call: Callable[[], None]) -> None:
    with pytest.raises(DeviceError, match=f"CUresult {code}$"):
        call()


@contextmanager
def captured_elsewhere(sim: SimDevice, **fields: int) -> Iterator[None]:
    """Another thread captures while the body runs; a capture that was broken meanwhile fails here."""
    began, done = threading.Event(), threading.Event()
    failed: list[Exception] = []

    def capture() -> None:
        begin(sim, **fields)
        sim.launch("node", stream=STREAM)
        began.set()
        done.wait(20)
        try:
            sim.launch("node", stream=STREAM)
            end(sim)
        except DeviceError as e:
            failed.append(e)

    thread = threading.Thread(target=capture)
    thread.start()
    assert began.wait(20)
    try:
        yield
    finally:
        done.set()
        thread.join(20)
    assert not failed, failed
