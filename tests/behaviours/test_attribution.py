"""Which region work belongs to: nested ones, threads, graphs, tasks, and regions that outlive a session."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gpu import ScenarioGpu

import cuptiprof
from cuptiprof.device.gpu import HOST_TO_DEVICE

pytest_plugins = ["behaviour_fixtures"]

Body = Callable[[ScenarioGpu], object]
Counts = dict[tuple[object, ...], int]


def collected(gpu: ScenarioGpu, body: Body, *, follows_launches: bool = True, **options: Any) -> cuptiprof.Result:
    gpu.prepare("node")
    prof = cuptiprof.profile(device=gpu.device, **options)
    prof._follows_launches = follows_launches
    with prof:
        body(gpu)
    return prof.result()


def attributed(result: cuptiprof.Result, table: str = "kernels") -> Counts:
    """How often each (name, region path) occurs; instances are checked against the regions, as they differ from run to run."""
    rows = getattr(result, table)
    instances = {int(i): p for i, p in zip(result.regions["instance"], result.regions["path"], strict=True)}
    for instance, path in zip(rows["region_instance"], rows["region"], strict=True):
        assert instances.get(int(instance), "") == path
    names = rows["name"] if "name" in rows.column_names else [""] * len(rows)
    return dict(Counter(zip(names, rows["region"], strict=True)))


def nested(gpu: ScenarioGpu) -> None:
    gpu.launch("outside")
    for _ in range(50):
        with cuptiprof.region("step"):
            gpu.launch("first", count=3)
            with cuptiprof.region("fwd"):
                gpu.launch("gemm")
                gpu.copy(HOST_TO_DEVICE, 4096)
            gpu.launch("last")
    gpu.launch("outside_again")


def threads(gpu: ScenarioGpu) -> None:
    barrier = threading.Barrier(4)

    def work(i: int) -> None:
        with cuptiprof.region(f"t{i}"):
            barrier.wait()
            for _ in range(200):
                with cuptiprof.region("inner"):
                    gpu.launch(f"k{i}")
                gpu.launch(f"l{i}")
            barrier.wait()
        gpu.launch(f"after{i}")

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in workers:
        t.start()
    for t in workers:
        t.join()


def inherits(gpu: ScenarioGpu) -> None:
    """A thread started inside a region works for it; one started outside for nobody."""
    for name in ("fwd", "bwd"):
        with cuptiprof.region(name):
            t = threading.Thread(target=lambda: gpu.launch("in_worker", count=10))
            t.start()
            t.join()
    t = threading.Thread(target=lambda: gpu.launch("outside", count=10))
    t.start()
    t.join()


def graph(gpu: ScenarioGpu) -> None:
    made = gpu.graph(lambda stream: gpu.launch("node", count=4, stream=stream))
    with cuptiprof.region("replayed"):
        gpu.run_graph(made)
    gpu.run_graph(made)


OF_NESTED: Counts = {
    ("outside", ""): 1,
    ("first", "step"): 150,
    ("gemm", "step/fwd"): 50,
    ("last", "step"): 50,
    ("outside_again", ""): 1,
}
OF_THREADS: Counts = {
    key: count
    for i in range(4)
    for key, count in (((f"k{i}", f"t{i}/inner"), 200), ((f"l{i}", f"t{i}"), 200), ((f"after{i}", ""), 1))
}
OF_INHERITED: Counts = {("in_worker", "fwd"): 10, ("in_worker", "bwd"): 10, ("outside", ""): 10}
OF_GRAPH: Counts = {("node", "replayed"): 4, ("node", ""): 4}


@pytest.mark.parametrize("activities", [["kernel", "memcpy"], ["kernel", "memcpy", "runtime"], None])
@pytest.mark.parametrize(
    ("body", "wanted"), [(nested, OF_NESTED), (threads, OF_THREADS), (inherits, OF_INHERITED), (graph, OF_GRAPH)]
)
def test_work_belongs_to_the_innermost_region(
    gpu: ScenarioGpu, body: Body, wanted: Counts, activities: list[str] | None
) -> None:
    r = collected(gpu, body, activities=activities)
    assert attributed(r) == wanted
    assert not r.losses, r.losses.line()


def test_copies_too(gpu: ScenarioGpu) -> None:
    r = collected(gpu, nested, activities=["kernel", "memcpy"])
    assert attributed(r, "memcpys") == {("", "step/fwd"): 50}


def test_threads_of_kernels(gpu: ScenarioGpu) -> None:
    def body(gpu: ScenarioGpu) -> None:
        with cuptiprof.region("r"):
            gpu.launch("mine")
        gpu.launch("mine_too")

    r = collected(gpu, body, activities=["kernel"])
    assert set(r.kernels["thread"]) == {threading.get_native_id()}


def test_an_exit_after_the_session_leaves_nothing_open(gpu: ScenarioGpu) -> None:
    region = cuptiprof.region("left_late")
    collected(gpu, lambda _: region.__enter__(), activities=["kernel"])
    region.__exit__(None, None, None)
    r = collected(gpu, lambda _: gpu.launch("next"), activities=["kernel"])
    assert list(r.kernels["region"]) == [""]
    assert not r.losses


def test_a_region_open_since_an_earlier_session_belongs_to_nobody(gpu: ScenarioGpu) -> None:
    region = cuptiprof.region("older")
    collected(gpu, lambda _: region.__enter__(), activities=["kernel"])
    r = collected(gpu, lambda _: gpu.launch("k"), activities=["kernel"])
    region.__exit__(None, None, None)
    assert list(r.kernels["region"]) == [""]
    assert not r.losses


def test_tasks_of_one_thread_are_told_apart(gpu: ScenarioGpu) -> None:
    def body(gpu: ScenarioGpu) -> None:
        async def task(name: str) -> None:
            with cuptiprof.region(name):
                await asyncio.sleep(0)
                gpu.launch(f"k_{name}")
                await asyncio.sleep(0)

        async def both() -> None:
            await asyncio.gather(task("a"), task("b"))

        asyncio.run(both())

    assert attributed(collected(gpu, body, activities=["kernel"])) == {("k_a", "a"): 1, ("k_b", "b"): 1}


def test_launches_that_are_not_followed_have_no_region_and_are_not_lost(gpu: ScenarioGpu) -> None:
    r = collected(gpu, nested, follows_launches=False, activities=["kernel"])
    assert len(r.kernels) == 50 * 5 + 2 and not r.losses
    assert set(r.kernels["region"]) == {""}


def test_counters_need_launches_followed(gpu: ScenarioGpu) -> None:
    with pytest.raises(cuptiprof.errors.SessionError, match="launch callbacks"):
        collected(gpu, nested, follows_launches=False, metrics=["achieved_occupancy"])


def test_many_sessions_leave_nothing_switched_on(gpu: ScenarioGpu) -> None:
    """A kind or a call still enabled would show in the second, or be refused."""
    for _ in range(5):
        r = collected(gpu, nested, activities=["kernel"])
        assert len(r.kernels) == 252 and len(r.api_calls) == 0 and not r.losses


def test_work_starts_inside_its_region(gpu: ScenarioGpu) -> None:
    r = collected(gpu, nested, activities=["kernel"])
    assert np.all(r.kernels["end"] >= r.kernels["start"])
    inside = r.kernels["region"] != ""
    regions = {int(i): int(s) for i, s in zip(r.regions["instance"], r.regions["start"], strict=True)}
    starts = np.array([regions[int(i)] for i in r.kernels["region_instance"][inside]])
    assert np.all(r.kernels["start"][inside] >= starts)
