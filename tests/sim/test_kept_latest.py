"""keep="latest": what is kept of each table is of the same stretch of time, however few rows a table has."""

from __future__ import annotations

import cuptiprof
from cuptiprof.sim.sim_device import SimDevice


def test_regions_of_the_kernels_that_are_kept() -> None:
    device = SimDevice()
    with cuptiprof.profile(device="sim", budget="8 MB", activities=["kernel", "sync"]) as prof:
        for step in range(1500):
            with cuptiprof.region("step"), cuptiprof.region(f"part {step % 7}"):
                device.launch("k", count=100)
            if step % 10 == 0:
                device.synchronize()
                assert device._lib.cuptiActivityFlushAll(0) == 0
    result = prof.result()
    kernels, regions = result.kernels, result.regions
    assert result.losses["budget_evicted"] > 10_000 and len(kernels) > 10_000
    span = int(kernels["end"].max() - kernels["start"].min())
    for table in (regions, result.synchronizations):
        assert abs(int(table["end"].min() - kernels["end"].min())) < span / 20
    known = set(regions["instance"].tolist())
    of_kernels = kernels["region_instance"].tolist()
    assert sum(instance in known for instance in of_kernels) > 0.95 * len(of_kernels)
