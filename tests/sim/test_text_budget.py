"""Names, paths and launch configurations count against the budget; what has no room is said, and the rows stay."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
import time
from collections.abc import Iterable

import numpy as np
import pytest

import cuptiprof
from cuptiprof.sim.sim_device import SimDevice

LOST = "(name lost)"


def wait_until_read(prof: cuptiprof.profile, sim: SimDevice) -> None:
    """The decoder has seen all that was launched."""
    sim.synchronize()
    end = time.monotonic() + 60
    while True:
        assert sim._lib.cuptiActivityFlushAll(0) == 0
        counts = prof._session.counts()
        if counts["kernels_received"] == counts["launches"]:
            return
        assert time.monotonic() < end, counts
        time.sleep(0.002)


def launch_named(prof: cuptiprof.profile, sim: SimDevice, names: Iterable[bytes]) -> None:
    kept = [ctypes.create_string_buffer(n) for n in names]
    ops = sim.ops(len(kept), 1)
    ops["name"] = [ctypes.addressof(b) for b in kept]
    ops["block"], ops["grid"] = (128, 1, 1), (1, 1, 1)
    sim.run(ops)
    wait_until_read(prof, sim)  # before the names go


@pytest.mark.parametrize("keep", ["latest", "first"])
def test_kernel_names(sim: SimDevice, keep: str) -> None:
    device = SimDevice()
    with cuptiprof.profile(device="sim", budget="8 MB", keep=keep, activities=["kernel"]) as prof:
        for i in range(0, 20_000, 1000):
            launch_named(prof, device, (b"kernel_%06d_" % j + b"x" * 230 for j in range(i, i + 1000)))
        device.launch("kernel_000000_" + "x" * 230)
    r = prof.result()
    names = list(r.kernels["name"])
    assert len(names) == 20_001 and r.losses["budget_evicted"] == 0
    lost = names.count(LOST)
    assert 0 < lost == r.losses["texts_lost"] < 20_000
    assert all(n == LOST or len(n) == 244 for n in names)
    assert names[-1] == "kernel_000000_" + "x" * 230  # one that has room already keeps it


def test_a_filter_judges_the_name_that_was_lost(sim: SimDevice) -> None:
    device = SimDevice()
    with cuptiprof.profile(device="sim", budget="5 MB", activities=["kernel"], kernels="chosen*") as prof:
        for i in range(0, 6000, 500):
            launch_named(prof, device, (b"kernel_%06d_" % j + b"x" * 500 for j in range(i, i + 500)))
        launch_named(prof, device, [b"chosen"])
    r = prof.result()
    assert list(r.kernels["name"]) == [LOST]


def test_launch_configurations(sim: SimDevice) -> None:
    """None is ever another launch's: it is right, or 0."""
    device = SimDevice()
    with cuptiprof.profile(device="sim", budget="8 MB", activities=["kernel"]) as prof:
        for i in range(0, 30_000, 1000):
            ops = device.ops(1000, 1, name="k")
            ops["block"] = (128, 1, 1)
            ops["grid"] = [(i + j + 1, 1, 1) for j in range(1000)]
            device.run(ops)
            wait_until_read(prof, device)
        device.launch("later", count=100, grid=(7_777_777, 1, 1))
        device.launch("known", count=100, grid=(5, 1, 1), block=(128, 1, 1))
    r = prof.result()
    k = r.kernels.sorted_by("correlation_id")
    assert len(k) == 30_200 and r.losses["configs_lost"] > 0
    later = k.where(k["name"] == "later")
    assert len(later) == 100 and set(later["grid_x"]) == {0} == set(later["block_x"])
    assert set(k.where(k["name"] == "known")["grid_x"]) == {5}
    work = k.where(k["name"] == "k")
    grids = np.asarray(work["grid_x"], np.int64)
    assert np.all((grids == 0) | (grids == np.arange(1, 30_001)))
    assert 1000 < (grids != 0).sum() < 30_000


def test_deeply_nested_regions(sim: SimDevice) -> None:
    device = SimDevice()
    depth = 3000
    with cuptiprof.profile(device="sim", budget="16 MB", activities=["kernel"]) as prof:
        regions = [cuptiprof.region("TreeNode.visit_subtree") for _ in range(depth)]
        for region in regions:
            region.__enter__()
            device.launch("k")
        for region in reversed(regions):
            region.__exit__(None, None, None)
        device.launch("last")
    r = prof.result()
    assert len(r.kernels) == depth + 1 and len(r.regions) == depth
    k = r.kernels.sorted_by("correlation_id")
    paths = [str(p) for p in k["region"]]
    assert paths[-1] == "" and paths[99] == "/".join(["TreeNode.visit_subtree"] * 100)
    assert max(map(len, paths)) <= 8192 and paths[depth - 1] == max(paths, key=len)
    # Who launched what is known all the same.
    assert list(k["region_instance"][:-1]) == list(range(1, depth + 1))
    assert sorted(r.regions["depth"]) == list(range(depth))
    assert 0 < r.losses["texts_lost"] < depth


def test_ever_new_region_names(sim: SimDevice) -> None:
    """They are counted, shared when there is no room, and free again after the session."""
    device = SimDevice()
    for _ in range(2):
        with cuptiprof.profile(device="sim", budget="8 MB", activities=["kernel"]) as prof:
            for i in range(4000):
                with cuptiprof.region(f"step_{i}"):
                    device.launch("k")
        r = prof.result()
        regions = list(r.kernels.sorted_by("correlation_id")["region"])
        assert len(regions) == 4000 and regions[0] == "step_0" and regions[-1] == "(other)"
        assert set(regions) == set(r.regions["path"])
        assert r.losses["texts_lost"] == regions.count("(other)")


def test_a_budget_holds() -> None:
    """The whole process, against one that collects nothing of the kind."""
    script = """
import sys, json, cuptiprof
from cuptiprof.sim.sim_device import SimDevice
which, n = sys.argv[1], int(sys.argv[2])
def peak():
    return next(int(l.split()[1]) >> 10 for l in open("/proc/self/status") if l.startswith("VmHWM"))
sim = SimDevice()
with cuptiprof.profile(device="sim", budget="8 MB", activities=["kernel"]) as prof:
    sim.launch("k")
before = peak()
with cuptiprof.profile(device="sim", budget="8 MB", activities=["kernel"]) as prof:
    if which == "names":
        for i in range(n):
            with cuptiprof.region(f"step_{i}_" + "x" * 100): pass
    elif which == "huge":
        for i in range(n):
            with cuptiprof.region(f"step_{i}_" + "x" * 100_000): pass
    else:
        regions = [cuptiprof.region("TreeNode.visit_subtree") for _ in range(n)]
        for r in regions: r.__enter__()
        sim.launch("k")
        for r in regions: r.__exit__(None, None, None)
    sim.launch("k")
print(json.dumps([peak() - before, len(prof.result().kernels)]))
"""
    for which, n in (("names", 100_000), ("huge", 300), ("deep", 10_000)):
        done = subprocess.run(
            [sys.executable, "-c", script, which, str(n)], capture_output=True, text=True, timeout=300, check=True
        )
        grown, kernels = json.loads(done.stdout)
        assert kernels == (2 if which == "deep" else 1)
        assert grown < 24, (which, grown)  # MB; the regions themselves, their objects and the ring are the rest
