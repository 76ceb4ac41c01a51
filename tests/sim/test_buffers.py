"""Activity buffers: given out, filled, given back; late, by somebody else, or never."""

from __future__ import annotations

import ctypes
import gc
from collections import Counter

import pytest

import cuptiprof
from cuptiprof.device.devices import Device, open_device
from cuptiprof.sim.sim_device import Fault, Op, SimDevice

FORCED = 1  # CUPTI_ACTIVITY_FLAG_FLUSH_FORCED


def leave_a_buffer_behind(device: Device, name: str, count: int, **keywords: str) -> cuptiprof.Result:
    """A session whose flushes all fail, so that CUPTI keeps what it wrote until it is asked again."""
    sim = SimDevice()
    with cuptiprof.profile(device=device, activities=["kernel"], **keywords) as prof:  # type: ignore[arg-type]
        sim.inject(Fault.FAIL_CALL, "cuptiActivityFlushAll", a=999)
        sim.launch(name, count=count)
    sim.clear_faults()
    assert len(prof.result().kernels) == 0 and prof.result().losses["unreconciled_launches"] == count
    return prof.result()


@pytest.mark.parametrize("buffer_size", ["64 KB", "16 KB", "256 KB"])
@pytest.mark.parametrize("completed", ["between", "at the start", "while running"])
def test_what_an_earlier_session_left_is_no_row_of_the_next(sim: SimDevice, buffer_size: str, completed: str) -> None:
    """Its memory is still there when it is read, whatever the size of the new buffers."""
    device = open_device("sim")
    leave_a_buffer_behind(device, "old", 100, buffer_size="64 KB", budget="8 MB")
    flush = sim._lib.cuptiActivityFlushAll
    if completed == "between":
        flush(FORCED)
    if completed == "while running":
        sim.inject(Fault.FAIL_CALL, "cuptiActivityFlushAll", a=999, c=1)
    with cuptiprof.profile(device=device, activities=["kernel"], buffer_size=buffer_size, budget="8 MB") as prof:
        sim.clear_faults()
        if completed == "while running":
            flush(FORCED)
        sim.launch("new", count=500)
    r = prof.result()
    assert Counter(r.kernels["name"]) == {"new": 500}
    assert r.losses["earlier_session"] >= 100  # kernels, and what was written beside them
    assert not r.losses, r.losses.line()


def test_memory_of_buffers_that_never_come_back_is_bounded(sim: SimDevice) -> None:
    """Forty sessions of two sizes, each leaving a buffer with CUPTI: what they do not hold is given back."""

    def resident() -> int:
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # what threads that ended have freed is no matter here
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * 4096

    device = open_device("sim")
    sizes = ("64 KB", "16 KB")
    for i in range(4):
        leave_a_buffer_behind(device, "old", 10, buffer_size=sizes[i % 2], budget="32 MB")
    before = resident()
    for i in range(40):
        leave_a_buffer_behind(device, "old", 10, buffer_size=sizes[i % 2], budget="32 MB")
    assert resident() - before < 24 << 20


def test_a_recycled_buffer_has_nothing_of_what_it_held_before(sim: SimDevice) -> None:
    """CUPTI may leave fields unwritten in buffers that it was promised cleared (ZEROED_OUT_ACTIVITY_BUFFER)."""
    rich = {
        "cluster": (2, 1, 1),
        "registers_per_thread": 255,
        "static_shared_memory": 0x7FFF,
        "dynamic_shared_memory": 0x7FFF,
        "local_memory_per_thread": 0x7FFF,
    }
    with cuptiprof.profile(
        device="sim", activities=["kernel"], buffer_size=4096, buffer_count=4, budget="8 MB"
    ) as prof:
        for _ in range(40):  # each fills several buffers, and waits until they are free again
            sim.launch("rich", count=40, **rich)
            sim.synchronize()
            prof._session.discard()
            sim.launch("plain", count=40)
            sim.synchronize()
            prof._session.discard()
        sim.launch("plain", count=200)
        sim.synchronize()
        sim.run(sim.ops(1, Op.MEMSET, bytes=64))
    kernels = prof.result().kernels
    assert set(kernels["name"]) == {"plain"}
    zero = ("cluster_x", "static_shared_memory", "dynamic_shared_memory", "local_memory_total", "graph_node_id")
    assert {c: sorted({int(v) for v in kernels[c]}) for c in zero} == {key: [0] for key in zero}
