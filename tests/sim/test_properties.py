"""Property tests: any program of regions and launches, and any flow of records through a small budget."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import cuptiprof
from cuptiprof.sim.device import Op, SimDevice

names = st.sampled_from(["a", "b", "c/d", "e\\f", "ü"])
program = st.recursive(st.just("launch"), lambda inner: st.tuples(names, st.lists(inner, max_size=4)), max_leaves=20)
programs = st.lists(st.lists(program, max_size=4), min_size=1, max_size=4)


def escape(name: str) -> str:
    return name.replace("\\", "\\\\").replace("/", "\\/")


def expected(steps: list[Any], path: str, out: list[str]) -> None:
    for step in steps:
        if step == "launch":
            out.append(path)
        else:
            expected(step[1], (path + "/" if path else "") + escape(step[0]), out)


def run(steps: list[Any], device: SimDevice, thread: int) -> None:
    for step in steps:
        if step == "launch":
            device.launch(f"t{thread}")
        else:
            with cuptiprof.region(step[0]):
                run(step[1], device, thread)


@settings(max_examples=60, deadline=None)
@given(programs)
def test_rings_and_regions(programs: list[list[Any]]) -> None:
    """Every thread's launches get the paths of its own program, in order; every region has its row."""
    # A thread that opens no region may inherit one: give each thread an own outermost region.
    with cuptiprof.profile(device="sim", budget="16 MB") as prof:
        device = SimDevice()

        def work(i: int) -> None:
            with cuptiprof.region(f"thread{i}"):
                run(programs[i], device, i)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(programs))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    r = prof.result()
    assert not r.losses
    kernels = r.kernels.sorted_by("correlation_id")
    for i, steps in enumerate(programs):
        want: list[str] = []
        expected(steps, f"thread{i}", want)
        mine = kernels.where(kernels["name"] == f"t{i}")
        assert list(mine["region"]) == want
    assert not r.regions["is_open"].any()
    instances = {row["instance"]: row for row in r.regions.rows()}
    for row in instances.values():
        if row["parent"]:
            parent = instances[row["parent"]]
            assert parent["depth"] == row["depth"] - 1
            assert parent["start"] <= row["start"] <= row["end"] <= parent["end"]


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 6), st.sampled_from(["kernel", "memcpy", "memset"])), min_size=1, max_size=12),
    st.sampled_from(["latest", "first"]),
)
def test_store(batches: list[tuple[int, str]], keep: str) -> None:
    """Whatever comes, in whatever mix: rows and losses add up, rows are the newest or the oldest of their kind."""
    kinds = {"kernel": Op.KERNEL, "memcpy": Op.MEMCPY, "memset": Op.MEMSET}
    tables = {"kernel": "kernels", "memcpy": "memcpys", "memset": "memsets"}
    sent = dict.fromkeys(kinds, 0)
    with cuptiprof.profile(
        device="sim",
        activities=["kernel", "memcpy", "memset"],
        keep=keep,
        budget="9 MB",
        buffer_size="64 KB",
        buffer_count=64,
    ) as prof:
        device = SimDevice()
        for thousands, kind in batches:
            for _ in range(thousands * 4):
                device.run(device.ops(1000, kinds[kind], name="k", flags=4, bytes=sent[kind]))
                sent[kind] += 1000
                prof._session.counts()
    r = prof.result()
    rows = sum(len(r.tables[tables[k]]) for k in kinds)
    others = len(r.devices) + len(r.contexts)
    lost = r.losses["budget_evicted"] + r.losses["pool_exhausted"]
    # A launch configuration that found no room is one more row left out; there is one configuration here.
    configurations_lost = 1 if sent["kernel"] and not len(r.launch_configs) else 0
    surplus = rows + others + lost - (sum(sent.values()) + 2)
    assert 0 <= surplus <= configurations_lost
    if r.losses["pool_exhausted"] == 0:
        for kind, table in tables.items():
            ids = np.sort(r.tables[table]["correlation_id"])
            if len(ids) and len(ids) < sent[kind] and keep == "latest":
                last = r.tables[table]["correlation_id"].max()
                assert (np.diff(r.tables[table]["start"][np.argsort(r.tables[table]["correlation_id"])]) >= 0).all()
                assert last <= sum(sent.values())
