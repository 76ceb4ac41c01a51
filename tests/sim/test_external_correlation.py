"""Regions by external correlation: the same attribution as by launch callbacks, where CUPTI can give it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cuptiprof
from cuptiprof import _core
from cuptiprof.activities import kinds_of
from cuptiprof.sim.device import Fault, Flag, Op, SimDevice, library_path

Body = Callable[[SimDevice], object]


def collected(attribution: str, body: Body, **options: Any) -> cuptiprof.Result:
    prof = cuptiprof.profile(device="sim", **options)
    prof._attribution = attribution
    with prof:
        body(SimDevice())
    return prof.result()


def attributed(result: cuptiprof.Result, table: str = "kernels") -> Counter[tuple[object, ...]]:
    """How often each (name, region path) occurs; instances are checked against the regions, as they differ from run to run."""
    rows = getattr(result, table)
    instances = {int(i): p for i, p in zip(result.regions["instance"], result.regions["path"], strict=True)}
    for instance, path in zip(rows["region_instance"], rows["region"], strict=True):
        assert instances.get(int(instance), "") == path
    names = rows["name"] if "name" in rows.column_names else [""] * len(rows)
    return Counter(zip(names, rows["region"], strict=True))


def same_both_ways(body: Body, table: str = "kernels", **options: Any) -> Counter[tuple[object, ...]]:
    by_callback = collected("callback", body, **options)
    by_external = collected("external", body, **options)
    assert not by_callback.losses and not by_external.losses, (by_callback.losses.line(), by_external.losses.line())
    assert attributed(by_external, table) == attributed(by_callback, table)
    assert Counter(by_external.regions["path"]) == Counter(by_callback.regions["path"])
    return attributed(by_external, table)


def nested(d: SimDevice) -> None:
    d.launch("outside")
    for _ in range(50):
        with cuptiprof.region("step"):
            d.launch("first", count=3)
            with cuptiprof.region("fwd"):
                d.launch("gemm")
                d.call(Op.MEMCPY, bytes=4096, copy_kind=1)
            d.launch("last")
    d.launch("outside_again")


def threads(d: SimDevice) -> None:
    barrier = threading.Barrier(4)

    def work(i: int) -> None:
        with cuptiprof.region(f"t{i}"):
            barrier.wait()
            for _ in range(200):
                with cuptiprof.region("inner"):
                    d.launch(f"k{i}")
                d.launch(f"l{i}")
            barrier.wait()
        d.launch(f"after{i}")

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in workers:
        t.start()
    for t in workers:
        t.join()


def inherits(d: SimDevice) -> None:
    """A thread without regions of its own works for the only one that has any; after that for nobody."""
    for name in ("fwd", "bwd"):
        with cuptiprof.region(name):
            t = threading.Thread(target=lambda: d.launch("in_worker", count=10))
            t.start()
            t.join()
    t = threading.Thread(target=lambda: d.launch("outside", count=10))
    t.start()
    t.join()


def graph(d: SimDevice) -> None:
    d.call(Op.GRAPH_BEGIN_CAPTURE, graph_id=5, stream=20)
    d.launch("node", count=4, stream=20)
    d.call(Op.GRAPH_END_CAPTURE, graph_id=5, stream=20)
    with cuptiprof.region("replayed"):
        d.call(Op.GRAPH_LAUNCH, graph_id=5, stream=20)
    d.call(Op.GRAPH_LAUNCH, graph_id=5, stream=20)


@pytest.mark.parametrize("activities", [["kernel", "memcpy"], ["kernel", "memcpy", "runtime"], None])
@pytest.mark.parametrize("body", [nested, threads, inherits, graph])
def test_both_ways_give_the_same_regions(sim: SimDevice, body: Body, activities: list[str] | None) -> None:
    counts = same_both_ways(body, activities=activities)
    assert sum(counts.values()) >= 8
    assert len({region for _, region in counts}) >= 2


def test_copies_too(sim: SimDevice) -> None:
    assert same_both_ways(nested, "memcpys", activities=["kernel", "memcpy"]) == {("", "step/fwd"): 50}


def test_threads_of_kernels(sim: SimDevice) -> None:
    def body(d: SimDevice) -> None:
        with cuptiprof.region("r"):
            d.launch("mine")
        d.launch("mine_too")

    r = collected("external", body, activities=["kernel"])
    assert set(r.kernels["thread"]) == {threading.get_native_id()}


def test_calls_that_only_explain_launches_leave_no_rows(sim: SimDevice) -> None:
    collected("callback", nested, activities=["kernel"])
    assert sim.truth()["callbacks"] > 2 * 300  # entry and exit; a start makes a fresh machine
    r = collected("external", nested, activities=["kernel"])
    assert len(r.api_calls) == 0 and len(r.kernels) == 50 * 5 + 2
    assert r.losses["unknown_records"] == 0
    # Nothing of ours ran at a launch: the callbacks left are those of contexts and modules.
    assert sim.truth()["callbacks"] < 10


def test_only_launches_have_call_records(sim: SimDevice) -> None:
    """What CUDA 12.5 is for: other calls cost nothing, which the number of records written shows."""

    def body(d: SimDevice) -> None:
        d.launch("k", count=10)
        d.run(d.ops(1000, Op.API, cbid=17))

    r = collected("external", body, activities=["kernel"])
    assert len(r.kernels) == 10
    assert 20 <= sim.truth()["records_written"] < 50
    collected("external", body, activities=["kernel", "runtime"])
    assert sim.truth()["records_written"] > 1000


def test_a_record_that_comes_before_its_call_waits(sim: SimDevice) -> None:
    """Call records are held back until other records were delivered: kernels then come first."""
    wanted = attributed(collected("callback", nested, activities=["kernel"]))

    def late(d: SimDevice) -> None:
        d.inject(Fault.LATE_RECORDS, a=3, b=40)
        nested(d)

    got = collected("external", late, activities=["kernel"], buffer_size=4096, buffer_count=64)
    assert sum(attributed(got).values()) == sum(wanted.values())
    assert got.losses["orphan_correlations"] == 0
    wrong = attributed(got) - wanted
    # A kernel whose call came while the ID that precedes it is still held back has no region; it never gets a wrong one.
    assert {region for _, region in wrong} <= {""}


def test_work_without_a_call_is_an_orphan_and_not_lost(sim: SimDevice) -> None:
    def body(d: SimDevice) -> None:
        d.launch("seen")
        d.run(d.ops(5, Op.KERNEL, name="unseen", flags=int(Flag.NO_API)))

    r = collected("external", body, activities=["kernel"])
    assert Counter(r.kernels["name"]) == {"seen": 1, "unseen": 5}
    assert r.losses["orphan_correlations"] == 5


def test_a_region_open_for_longer_than_the_window(sim: SimDevice) -> None:
    """It is found for as long as it is open and after. Closed ones whose records come too late are counted, not guessed."""

    def body(d: SimDevice) -> None:
        with cuptiprof.region("epoch"):
            for i in range(70_000):
                with cuptiprof.region("step"):
                    if i % 1000 == 0:
                        d.launch("in_step")
                        time.sleep(0.005)  # the decoder keeps up with the ring
            d.launch("at_the_end")

    r = collected("external", body, activities=["kernel"])
    counts = attributed(r)
    assert counts[("at_the_end", "epoch")] == 1
    assert counts[("in_step", "epoch/step")] + counts[("in_step", "")] == 70
    assert counts[("in_step", "")] == r.losses["orphan_correlations"] < 70


def test_an_exit_after_the_session_leaves_nothing_on_the_stack(sim: SimDevice) -> None:
    region = cuptiprof.region("left_late")
    collected("external", lambda d: region.__enter__(), activities=["kernel"])
    region.__exit__(None, None, None)
    r = collected("external", lambda d: d.launch("next"), activities=["kernel"])
    assert list(r.kernels["region"]) == [""]
    assert not r.losses


def test_a_region_open_since_an_earlier_session_belongs_to_nobody(sim: SimDevice) -> None:
    region = cuptiprof.region("older")
    collected("external", lambda d: region.__enter__(), activities=["kernel"])
    r = collected("external", lambda d: d.launch("k"), activities=["kernel"])
    region.__exit__(None, None, None)
    assert list(r.kernels["region"]) == [""]
    assert not r.losses


def test_tasks_of_one_thread_share_a_stack(sim: SimDevice) -> None:
    """The known limit, which launch callbacks do not have: CUPTI's stack is per thread, not per task."""

    def body(d: SimDevice) -> None:
        async def task(name: str) -> None:
            with cuptiprof.region(name):
                await asyncio.sleep(0)
                d.launch(f"k_{name}")
                await asyncio.sleep(0)

        async def both() -> None:
            await asyncio.gather(task("a"), task("b"))

        asyncio.run(both())

    right = {("k_a", "a"): 1, ("k_b", "b"): 1}
    assert attributed(collected("callback", body, activities=["kernel"])) == right
    assert attributed(collected("external", body, activities=["kernel"])) != right


def test_none_attributes_nothing_and_loses_nothing(sim: SimDevice) -> None:
    r = collected("none", nested, activities=["kernel"])
    assert len(r.kernels) == 50 * 5 + 2 and not r.losses
    assert set(r.kernels["region"]) == {""}
    assert sim.truth()["callbacks"] < 10


def test_many_sessions_leave_nothing_switched_on(sim: SimDevice) -> None:
    for _ in range(5):
        collected("external", nested, activities=["kernel"])
        SimDevice().reset(virtual_clock=True)  # refused while a kind or a call is enabled


def test_errors(sim: SimDevice) -> None:
    with pytest.raises(cuptiprof.errors.SessionError, match="launch callbacks"):
        collected("external", nested, metrics=["achieved_occupancy"])
    with pytest.raises(cuptiprof.errors.SessionError, match="unknown attribution"):
        collected("thread", nested)
    api = _core.load_cupti(str(library_path()), "test", True)
    sim.inject(Fault.FAIL_CALL, "cuptiActivityEnableDriverApi", 27, 20, 1)
    session = _core.Session(api=api, kinds=kinds_of(["kernel"]), keep="latest", budget=32 << 20, attribution="external")
    with pytest.raises(cuptiprof.errors.CuptiError) as e:
        session.start()
    assert (e.value.code, e.value.call) == (27, "cuptiActivityEnableDriverApi")
    sim.clear_faults()
    SimDevice().reset(virtual_clock=True)  # refused if the calls before the failing one were still on
    assert len(collected("external", nested, activities=["kernel"]).kernels) == 252


def test_times_are_the_same_columns(sim: SimDevice) -> None:
    r = collected("external", nested, activities=["kernel"])
    assert np.all(r.kernels["end"] >= r.kernels["start"])
    inside = r.kernels["region"] != ""
    regions = {int(i): int(s) for i, s in zip(r.regions["instance"], r.regions["start"], strict=True)}
    starts = np.array([regions[int(i)] for i in r.kernels["region_instance"][inside]])
    assert np.all(r.kernels["start"][inside] >= starts)
