"""Records of what CUPTI and the driver cost: some bring memory that the client is to free."""

from __future__ import annotations

import ctypes
import gc
import os

import cuptiprof
from cuptiprof.sim.sim_device import SimDevice

COMMAND_BUFFER_FULL = 6 << 16  # CUpti_ActivityOverheadKind
LAUNCHES, PENDING = 2_000, 1_024


class Heap(ctypes.Structure):
    """struct mallinfo2."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in [
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        ]
    ]


def bytes_in_use() -> int:
    """Of the heap that the main thread takes memory from."""
    gc.collect()
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = Heap
    return int(mallinfo2().uordblks)


def session(sim: SimDevice) -> cuptiprof.Result:
    with cuptiprof.profile(device="sim", activities=["kernel", "overhead"], budget="16 MB") as prof:
        sim.launch("k", count=LAUNCHES, duration_ns=100_000)
        sim.synchronize()
    return prof.result()


def test_launches_that_wait_for_room_in_their_stream(sim: SimDevice) -> None:
    r = session(sim)
    full = r.overhead.where(r.overhead["kind"] == COMMAND_BUFFER_FULL)
    assert 0 < len(full) <= LAUNCHES - PENDING
    assert set(full["correlation_id"]) <= set(r.kernels["correlation_id"])
    assert set(full["process"]) == {os.getpid()} and (full["end"] >= full["start"]).all()


def test_what_they_bring_is_freed(sim: SimDevice) -> None:
    session(sim)
    before, waits = bytes_in_use(), 0
    for _ in range(3):
        waits += int((session(sim).overhead["kind"] == COMMAND_BUFFER_FULL).sum())
    assert waits > 1_000
    assert bytes_in_use() - before < 16 * waits  # each takes 32
