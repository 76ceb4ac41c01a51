"""A result while the session goes on."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

import cuptiprof
from cuptiprof.errors import CuptiprofError
from cuptiprof.sim.sim_device import SimDevice


@pytest.fixture
def device() -> SimDevice:
    return SimDevice()


def launch(device: SimDevice, name: str, count: int = 10) -> None:
    for _ in range(count):
        device.launch(name)
    device.synchronize()


def test_what_was_collected_so_far(device: SimDevice) -> None:
    with cuptiprof.profile(device="sim") as prof:
        with cuptiprof.region("first"):
            launch(device, "a")
        prof.step()
        with cuptiprof.region("open"):
            launch(device, "b", 5)
            early = prof.snapshot()
            again = prof.snapshot()
            launch(device, "c", 7)
    whole = prof.result()
    names, counts = np.unique(early.kernels["name"], return_counts=True)
    assert dict(zip(names.tolist(), counts.tolist(), strict=True)) == {"a": 10, "b": 5}
    assert set(early.kernels["region"]) == {"first", "open"} and len(again.kernels) == 15
    regions = {row["name"]: row for row in early.regions.rows()}
    assert regions["open"]["is_open"] == 1 and regions["first"]["is_open"] == 0
    assert len(early.markers) == 2 and len(early.devices) == 1 and len(early.contexts) == 1
    assert early.metadata["stop_time_ns"] < whole.metadata["stop_time_ns"]
    # The session's own result is what it would have been.
    assert len(whole.kernels) == 22 and len(whole.devices) == 1
    assert {row["name"]: row["is_open"] for row in whole.regions.rows()} == {"first": 0, "open": 0}
    assert not any(whole.losses.values())


def test_a_snapshot_outlives_its_session(device: SimDevice, tmp_path: Path) -> None:
    with cuptiprof.profile(device="sim") as prof:
        launch(device, "a")
        early = prof.snapshot()
    del prof
    early.save(tmp_path / "early.cuptiprof")
    assert len(cuptiprof.open(tmp_path / "early.cuptiprof").kernels) == 10


def test_while_others_launch(device: SimDevice) -> None:
    """Each snapshot is the beginning of what came: nothing twice, nothing torn, nothing lost for it."""
    stop = threading.Event()

    def work(number: int) -> None:
        while not stop.is_set():
            with cuptiprof.region(f"thread_{number}"):
                for _ in range(50):
                    device.launch(f"kernel_{number}")

    with cuptiprof.profile(device="sim", budget="64 MB") as prof:
        threads = [threading.Thread(target=work, args=[i]) for i in range(2)]
        for thread in threads:
            thread.start()
        taken = [prof.snapshot() for _ in range(20)]
        stop.set()
        for thread in threads:
            thread.join()
    whole = prof.result()
    lengths = [len(result.kernels) for result in taken]
    assert lengths == sorted(lengths) and lengths[-1] > 0
    for result in taken:
        ids = result.kernels["correlation_id"]
        assert len(np.unique(ids)) == len(ids)
        assert all(
            r == "thread_" + n[-1] for n, r in zip(result.kernels["name"], result.kernels["region"], strict=True)
        )
    assert whole.losses["orphan_correlations"] == 0 and whole.losses["region_overflow"] == 0
    assert len(whole.kernels) + whole.losses["budget_evicted"] >= lengths[-1]


def test_where_there_is_none(device: SimDevice, tmp_path: Path) -> None:
    prof = cuptiprof.profile(device="sim")
    with pytest.raises(CuptiprofError, match="snapshot\\(\\) without start"):
        prof.snapshot()
    with (
        cuptiprof.profile(device="sim", keep="spill", spill_dir=tmp_path) as spilling,
        pytest.raises(CuptiprofError, match="spill"),
    ):
        spilling.snapshot()
    with (
        cuptiprof.profile(device="sim", metrics=["achieved_occupancy"]) as counting,
        pytest.raises(CuptiprofError, match="counters"),
    ):
        counting.snapshot()


def test_paused_and_filtered(device: SimDevice) -> None:
    with cuptiprof.profile(device="sim", kernels="b*") as prof:
        launch(device, "a")
        launch(device, "b", 3)
        prof.pause()
        launch(device, "b")
        taken = prof.snapshot()
        prof.resume()
    assert set(taken.kernels["name"]) == {"b"} and len(taken.kernels) == 3


def test_a_pause_that_does_not_wait(device: SimDevice) -> None:
    """What the GPU still does is not waited for; the run says when nobody looked."""
    with cuptiprof.profile(device="sim") as prof:
        launch(device, "a")
        prof.pause(wait=False)
        launch(device, "b")
        prof.resume()
        launch(device, "c", 2)
        prof.snapshot()  # for which its thread looks
        assert prof.counts()["decoder_ns"] > 0
    result = prof.result()
    ((begin, end),) = result.metadata["unobserved_ns"]
    assert begin < end and set(result.kernels["name"]) == {"a", "c"}
    with prof:
        pass
    assert "unobserved_ns" not in prof.result().metadata
