"""CUPTI's activity API has one set of buffer callbacks and one set of switches for everybody in the process."""

from __future__ import annotations

import threading
import time

import pytest
from other_client import FORCED, OtherClient

import cuptiprof
from cuptiprof.device.devices import open_device
from cuptiprof.sim.sim_device import Fault, SimDevice


@pytest.fixture
def other(sim: SimDevice) -> OtherClient:
    return OtherClient()


def test_buffers_of_a_client_before_us_go_back_to_it(sim: SimDevice, other: OtherClient) -> None:
    """What it had in CUPTI when we came is delivered through its own callbacks, not through ours."""
    device = open_device("sim")
    other.register()
    other.enable()
    sim.launch("theirs", count=10, duration_ns=1_000_000)
    other.disable()
    with cuptiprof.profile(device=device, activities=["kernel"]) as prof:
        sim.launch("ours", count=10)
    assert other.held() == 0 and len(other.returned) == 1 and not other.strangers
    r = prof.result()
    assert set(r.kernels["name"]) == {"ours"} and len(r.kernels) == 10
    assert not r.losses and r.losses["foreign_buffers"] == 0


def test_a_buffer_of_another_client_is_left_alone(sim: SimDevice, other: OtherClient) -> None:
    """It comes to us when CUPTI did not give it back before we registered; we neither read rows from it nor give it out."""
    device = open_device("sim")
    other.register()
    other.enable()
    thread = threading.Thread(target=lambda: sim.launch("theirs", count=10))
    thread.start()
    thread.join()
    other.disable()
    small = {"activities": ["kernel"], "buffer_count": 2, "buffer_size": 4096, "budget": "8 MB"}
    sim.inject(Fault.FAIL_CALL, "cuptiActivityFlushAll", a=999, c=1)
    with cuptiprof.profile(device=device, **small) as prof:
        other.flush()
        before = other.contents()
        for _ in range(20):
            sim.launch("ours", count=100)
    r = prof.result()
    assert set(r.kernels["name"]) == {"ours"}
    assert r.losses["foreign_buffers"] == 1
    assert len(r.kernels) + r.metadata["launches"]["kernels_lost_in_pool"] == 2000
    assert other.contents() == before


def test_a_client_that_takes_our_place_is_noticed(sim: SimDevice, other: OtherClient) -> None:
    device = open_device("sim")
    with cuptiprof.profile(device=device) as prof:
        sim.inject(Fault.FAIL_CALL, "cuptiActivityFlushAll", a=999)  # CUPTI holds a buffer of ours
        sim.launch("before", count=100)
        sim.synchronize()
        other.register()
        sim.clear_faults()
        sim.launch("after", count=2000)
        sim.synchronize()
    r = prof.result()
    counts = r.metadata["launches"]
    assert len(r.kernels) + r.losses["unreconciled_launches"] == counts["launches"] == 2100
    assert r.losses["withheld_buffers"] > 0
    assert "another client of CUPTI" in r.metadata["note"]
    assert r.metadata["note"] in str(r.summary())


def test_it_is_noticed_when_cupti_held_no_buffer_of_ours(sim: SimDevice, other: OtherClient) -> None:
    device = open_device("sim")
    with cuptiprof.profile(device=device, activities=["kernel"]) as prof:
        sim.launch("before", count=100)
        sim.synchronize()
        other.flush(FORCED)
        other.register()
        launched = 0
        for _ in range(60):  # several times as long as the decoder's flushes lie apart
            sim.launch("after", count=10)
            launched += 10
            time.sleep(0.02)
    r = prof.result()
    assert set(r.kernels["name"]) == {"before"} and len(r.kernels) == 100
    assert r.losses["unreconciled_launches"] == launched and r.losses["withheld_buffers"] == 0
    assert "registered its own buffers" in r.metadata["note"] and "since about" in r.metadata["note"]


def test_a_client_that_switches_our_kinds_off_is_suspected(sim: SimDevice, other: OtherClient) -> None:
    device = open_device("sim")
    with cuptiprof.profile(device=device) as prof:
        sim.launch("before", count=100)
        other.disable()
        sim.launch("after", count=3000)
    r = prof.result()
    assert len(r.kernels) == 100 and r.losses["unreconciled_launches"] == 3000
    assert "3000 kernel launches have no record" in r.metadata["note"]
    assert "switched" in r.metadata["note"]


def test_sessions_after_it_are_whole_again(sim: SimDevice, other: OtherClient) -> None:
    device = open_device("sim")
    for _ in range(5):
        with cuptiprof.profile(device=device, activities=["kernel"], buffer_count=4, buffer_size="16 KB", budget="8 MB") as prof:  # fmt: skip
            sim.launch("k", count=100)
            other.register()
            sim.launch("k", count=100)
        assert prof.result().losses["withheld_buffers"] + prof.result().losses["unreconciled_launches"] > 0
        with cuptiprof.profile(device=device, activities=["kernel"], buffer_count=4, buffer_size="16 KB", budget="8 MB") as prof:  # fmt: skip
            for _ in range(40):
                sim.launch("k", count=20)
                sim.synchronize()
                prof._session.counts()
        r = prof.result()
        counts = r.metadata["launches"]
        assert len(r.kernels) + counts["kernels_lost_in_pool"] == counts["launches"] == 800
        assert r.losses["unreconciled_launches"] == 0 and r.losses["withheld_buffers"] == 0
        assert "note" not in r.metadata
