"""Who works for whom: regions handed to threads, pools and tasks, and never guessed."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from multiprocessing.pool import ThreadPool
from queue import SimpleQueue
from typing import Any

import pytest
from gpu import ScenarioGpu
from scenarios import collected

import cuptiprof
from cuptiprof import _core

pytest_plugins = ["behaviour_fixtures"]


class Elsewhere:
    """A thread that was there before, and does what it is given; `name` as the system knows it."""

    def __init__(self, name: bytes = b"elsewhere") -> None:
        self._jobs: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._done: SimpleQueue[BaseException | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._serve, args=(name,))
        self._thread.start()

    def _serve(self, name: bytes) -> None:
        ctypes.CDLL(None).prctl(15, name, 0, 0, 0)  # PR_SET_NAME
        while (job := self._jobs.get()) is not None:
            try:
                job()
                self._done.put(None)
            except BaseException as e:
                self._done.put(e)

    def start(self, job: Callable[[], object]) -> None:
        self._jobs.put(job)

    def wait(self) -> None:
        if (error := self._done.get()) is not None:
            raise error

    def run(self, job: Callable[[], object]) -> None:
        self.start(job)
        self.wait()

    def close(self) -> None:
        self._jobs.put(None)
        self._thread.join()


def in_thread(function: Callable[[], object]) -> None:
    t = threading.Thread(target=function)
    t.start()
    t.join()


def regions_of(r: cuptiprof.Result) -> dict[str, str]:
    found: dict[str, set[str]] = {}
    for name, region in zip(r.kernels["name"], r.kernels["region"], strict=True):
        found.setdefault(str(name), set()).add(str(region))
    assert all(len(v) == 1 for v in found.values()), found
    return {k: v.pop() for k, v in found.items()}


@pytest.fixture
def elsewhere() -> Any:
    with closing(Elsewhere()) as thread:
        yield thread


def test_nothing_is_guessed(gpu: ScenarioGpu, elsewhere: Elsewhere) -> None:
    """A thread that opens no region, beside the only one that has one open, works for nobody that we know of."""

    def body() -> None:
        with cuptiprof.region("mine"):
            elsewhere.run(lambda: gpu.launch("theirs"))
            gpu.launch("mine")

    assert regions_of(collected(gpu, body)) == {"theirs": "", "mine": "mine"}


def test_what_was_open_before_is_nobody_elses(gpu: ScenarioGpu, elsewhere: Elsewhere) -> None:
    entered, leave = threading.Event(), threading.Event()

    def older() -> None:
        with cuptiprof.region("older"):
            entered.set()
            leave.wait()
            gpu.launch("in_older")
        gpu.launch("after_older")

    elsewhere.start(older)
    entered.wait()

    def body() -> None:
        with cuptiprof.region("newer"):
            gpu.launch("in_newer")
            leave.set()
            elsewhere.wait()

    r = collected(gpu, body)
    assert regions_of(r) == {"in_older": "", "after_older": "", "in_newer": "newer"}
    assert list(r.regions["path"]) == ["newer"]


def test_a_thread_started_inside_a_region_works_for_it_while_it_is_open(gpu: ScenarioGpu) -> None:
    inside, closed = threading.Event(), threading.Event()

    def work() -> None:
        gpu.launch("first")
        with cuptiprof.region("own"):
            gpu.launch("nested")
        in_thread(lambda: gpu.launch("of_its_thread"))
        inside.set()
        closed.wait()
        gpu.launch("later")

    def body() -> None:
        with cuptiprof.region("train"):
            with cuptiprof.region("load"):
                t = threading.Thread(target=work)
                t.start()
                inside.wait()
            closed.set()
            t.join()
        in_thread(lambda: gpu.launch("outside"))

    r = collected(gpu, body)
    assert regions_of(r) == {
        "first": "train/load",
        "nested": "train/load/own",
        "of_its_thread": "train/load",
        "later": "train",
        "outside": "",
    }
    rows = {row["path"]: row for row in r.regions.rows()}
    assert rows["train/load/own"]["parent"] == rows["train/load"]["instance"]
    assert rows["train/load/own"]["depth"] == 2


def test_a_dead_threads_regions_are_not_the_next_ones(gpu: ScenarioGpu) -> None:
    """The slot of a thread that ended goes to the next one; what it left open does not."""

    def dead() -> None:
        cuptiprof.region("dead").__enter__()

    def alive() -> None:
        with cuptiprof.region("alive"):
            gpu.launch("k_alive")

    def body() -> None:
        for work in (dead, alive, lambda: gpu.launch("k_plain")):
            in_thread(work)
            time.sleep(0.1)  # the decoder has seen it end

    r = collected(gpu, body)
    assert regions_of(r) == {"k_alive": "alive", "k_plain": ""}
    assert [(row["path"], row["is_open"]) for row in r.regions.rows()] == [("dead", 1), ("alive", 0)]


def test_tasks_of_a_loop_in_a_background_thread(gpu: ScenarioGpu) -> None:
    """Every inference server: ``Thread(target=loop.run_forever)`` and ``run_coroutine_threadsafe``."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def work(name: str) -> None:
        await asyncio.sleep(0)
        with cuptiprof.region(name):
            for _ in range(20):
                gpu.launch(f"k_{name}")
                await asyncio.sleep(0.001)

    def body() -> None:
        jobs = [asyncio.run_coroutine_threadsafe(work(name), loop) for name in "abc"]
        for job in jobs:
            job.result()

    try:
        r = collected(gpu, body)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
    assert regions_of(r) == {"k_a": "a", "k_b": "b", "k_c": "c"}
    assert len(r.kernels) == 60 and len(set(r.regions["task"])) == 3


def test_work_given_to_a_pool(gpu: ScenarioGpu) -> None:
    """A pool's threads serve everybody: each job belongs where it was submitted, not where its thread was started."""

    def body() -> None:
        with ThreadPoolExecutor(1) as pool:
            with cuptiprof.region("a"):
                pool.submit(gpu.launch, "k_a").result()
                pool.submit(gpu.launch, "k_a").result()
            with cuptiprof.region("b"):
                pool.submit(gpu.launch, "k_b").result()
            pool.submit(gpu.launch, "none").result()

        async def task(name: str) -> None:
            with cuptiprof.region(name):
                await asyncio.to_thread(gpu.launch, f"k_{name}")

        async def both() -> None:
            await asyncio.gather(task("c"), task("d"))

        asyncio.run(both())
        with cuptiprof.region("started"), ThreadPool(1) as other:
            other.apply(gpu.launch, ("of_a_pool_that_is_not_followed",))

    want = {"k_a": "a", "k_b": "b", "k_c": "c", "k_d": "d", "none": "", "of_a_pool_that_is_not_followed": ""}
    assert regions_of(collected(gpu, body)) == want


def test_what_is_carried(gpu: ScenarioGpu, elsewhere: Elsewhere) -> None:
    def body() -> None:
        nowhere = cuptiprof.carry(lambda: gpu.launch("nothing"))
        with cuptiprof.region("outer"):
            with cuptiprof.region("inner"):
                carried = cuptiprof.carry()

                def given() -> None:
                    gpu.launch("before")
                    with carried:
                        gpu.launch("given")
                        with cuptiprof.region("own"):
                            gpu.launch("nested")
                    gpu.launch("after")

                elsewhere.run(given)
                elsewhere.run(cuptiprof.carry(lambda: gpu.launch("decorated")))
                closed = cuptiprof.carry(lambda: gpu.launch("closed"))
                all_closed = cuptiprof.carry(lambda: gpu.launch("all_closed"))
            elsewhere.run(closed)
        elsewhere.run(all_closed)
        elsewhere.run(nowhere)

    r = collected(gpu, body)
    assert regions_of(r) == {
        "before": "",
        "given": "outer/inner",
        "nested": "outer/inner/own",
        "after": "",
        "decorated": "outer/inner",
        "closed": "outer",
        "all_closed": "",
        "nothing": "",
    }
    assert sorted(r.regions["path"]) == ["outer", "outer/inner", "outer/inner/own"]


def test_what_is_carried_serves_several_at_once(gpu: ScenarioGpu) -> None:
    """Four threads, and two tasks that interleave on one, work for the same region and leave it in any order."""

    async def task(name: str, carried: Any, first: asyncio.Event, last: asyncio.Event) -> None:
        with carried:
            first.set()
            await last.wait()
            gpu.launch(f"{name}_in")
        gpu.launch(f"{name}_out")

    async def both(carried: Any) -> None:
        a, b = asyncio.Event(), asyncio.Event()  # a enters, b enters, a leaves, b leaves
        await asyncio.gather(task("a", carried, a, b), task("b", carried, b, a))

    def body() -> None:
        with cuptiprof.region("r"):
            carried = cuptiprof.carry()
            gate = threading.Barrier(4)

            def work(i: int) -> None:
                for _ in range(20):
                    gate.wait()
                    with carried:
                        gpu.launch(f"in{i}")
                    gpu.launch(f"out{i}")

            with ThreadPool(4) as pool:
                pool.map(work, range(4), chunksize=1)
                pool.apply(asyncio.run, (both(carried),))

    want = {f"in{i}": "r" for i in range(4)} | {f"out{i}": "" for i in range(4)}
    want |= {"a_in": "r", "b_in": "r", "a_out": "", "b_out": ""}
    assert regions_of(collected(gpu, body)) == want


def test_what_is_carried_knows_generators(gpu: ScenarioGpu) -> None:
    def pieces() -> Any:
        yield 1

    with pytest.raises(TypeError, match="generator"):
        cuptiprof.carry(pieces)


def test_what_an_earlier_session_carried(gpu: ScenarioGpu) -> None:
    carried = []

    def take() -> None:
        with cuptiprof.region("then"):
            carried.append(cuptiprof.carry(lambda: gpu.launch("k")))

    collected(gpu, take)
    assert regions_of(collected(gpu, carried[0])) == {"k": ""}


def test_autograd_threads_work_for_who_called_backward(gpu: ScenarioGpu, elsewhere: Elsewhere) -> None:
    with ExitStack() as stack:
        autograd = stack.enter_context(closing(Elsewhere(b"pt_autograd_0")))

        def hook() -> None:
            gpu.launch("bwd")
            with cuptiprof.region("hook"):
                gpu.launch("hooked")

        def backward(job: Callable[[], object]) -> None:
            _core._backward_begins()
            autograd.run(job)
            _core._backward_ends()

        def beside() -> None:
            with cuptiprof.region("beside"):
                ready.set()
                go_on.wait()

        def many() -> None:
            with cuptiprof.region("other"):
                _core._backward_begins()
                backward(lambda: gpu.launch("whose"))
                _core._backward_ends()

        ready, go_on = threading.Event(), threading.Event()

        def body() -> None:
            elsewhere.start(beside)
            ready.wait()
            with cuptiprof.region("step"):
                backward(hook)
                autograd.run(lambda: gpu.launch("not_in_backward"))
            backward(lambda: gpu.launch("called_outside"))
            go_on.set()
            elsewhere.wait()
            with cuptiprof.region("first"):
                _core._backward_begins()
                elsewhere.run(many)  # two threads are inside the engine
                _core._backward_ends()

        r = collected(gpu, body)
    assert regions_of(r) == {
        "bwd": "step",
        "hooked": "step/hook",
        "not_in_backward": "",
        "called_outside": "",
        "whose": "",
    }


def test_one_region_object_of_several_threads(gpu: ScenarioGpu, elsewhere: Elsewhere) -> None:
    """Entered on one thread before the session, on another one in it; each exit finds its own entry."""
    shared = cuptiprof.region("shared")
    inside, leave = threading.Event(), threading.Event()

    def older() -> None:
        with shared:
            inside.set()
            leave.wait()

    elsewhere.start(older)
    inside.wait()

    def body() -> None:
        with shared:
            leave.set()
            elsewhere.wait()
            gpu.launch("inside")
        gpu.launch("outside")

    r = collected(gpu, body)
    assert regions_of(r) == {"inside": "shared", "outside": ""}
    assert [(row["path"], row["is_open"]) for row in r.regions.rows()] == [("shared", 0)]


def test_entered_again_deeper_than_64(gpu: ScenarioGpu) -> None:
    region = cuptiprof.region("r")

    def down(n: int) -> None:
        if n:
            with region:
                down(n - 1)
        else:
            gpu.launch("in")

    def body() -> None:
        down(200)
        gpu.launch("out")

    r = collected(gpu, body)
    assert regions_of(r) == {"in": "/".join("r" * 200), "out": ""}
    assert len(r.regions) == 200 and not r.regions["is_open"].any()


def test_left_on_another_thread(gpu: ScenarioGpu, elsewhere: Elsewhere) -> None:
    """It is closed where it is open; and the room kept for its exit is free again."""

    crossing = cuptiprof.region("crossing")

    def body() -> None:
        for _ in range(300):
            crossing.__enter__()
            gpu.launch("in")
            elsewhere.run(lambda: crossing.__exit__(None, None, None))
            assert _core._hand_over() is None
            gpu.launch("after")

    r = collected(gpu, body)
    assert regions_of(r) == {"in": "crossing", "after": ""}
    assert len(r.regions) == 300 and not r.regions["is_open"].any()


def test_hand_over_with_counters(gpu: ScenarioGpu, elsewhere: Elsewhere, counting: None) -> None:
    """What is decided at the launch follows the same rule as what the decoder finds out later."""

    def body() -> None:
        with cuptiprof.region("r"):
            in_thread(lambda: gpu.launch("started"))
            elsewhere.run(lambda: gpu.launch("unknown"))
            elsewhere.run(cuptiprof.carry(lambda: gpu.launch("given")))
            crossing = cuptiprof.region("crossing")
            crossing.__enter__()
            elsewhere.run(lambda: crossing.__exit__(None, None, None))
            gpu.launch("after")
            closed = cuptiprof.carry(lambda: gpu.launch("closed"))
        elsewhere.run(closed)

    r = collected(gpu, body, metrics=["inst_executed"], regions="r")
    want = {"started": "r", "given": "r", "after": "r"}
    assert regions_of(r) == want
    assert dict(zip(r.metric_ranges["name"], r.metric_ranges["region"], strict=True)) == want


def test_nothing_of_ours_stays(gpu: ScenarioGpu) -> None:
    before = (threading.Thread.start, threading.Thread._bootstrap_inner, ThreadPoolExecutor.submit)  # type: ignore[attr-defined]
    collected(gpu, lambda: gpu.launch("k"))
    assert before == (threading.Thread.start, threading.Thread._bootstrap_inner, ThreadPoolExecutor.submit)  # type: ignore[attr-defined]


def test_a_dropped_session_follows_nothing_any_more(gpu: ScenarioGpu) -> None:
    """Thread.start, submit and torch's engine are the program's own again, without stop()."""
    before = (threading.Thread.start, ThreadPoolExecutor.submit, list(sys.meta_path))
    dropped = cuptiprof.profile(device=gpu.device, activities=["kernel"])
    dropped.start()
    assert threading.Thread.start is not before[0]
    del dropped
    gc.collect()
    assert (threading.Thread.start, ThreadPoolExecutor.submit, list(sys.meta_path)) == before
