"""Regions: nesting, threads, tasks, exceptions, decorators, metadata."""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
import time

import numpy as np
import pytest
from gpu import ScenarioGpu
from scenarios import collected

import cuptiprof

pytest_plugins = ["behaviour_fixtures"]


def by_name(result: cuptiprof.Result) -> dict[str, str]:
    return dict(zip(result.kernels["name"], result.kernels["region"], strict=True))


def test_innermost_region_wins(gpu: ScenarioGpu) -> None:
    def body() -> None:
        gpu.launch("outside")
        with cuptiprof.region("a"):
            gpu.launch("in_a")
            with cuptiprof.region("b"):
                gpu.launch("in_b")
            gpu.launch("in_a_again")
        gpu.launch("outside_again")

    r = collected(gpu, body)
    assert by_name(r) == {"outside": "", "in_a": "a", "in_b": "a/b", "in_a_again": "a", "outside_again": ""}
    regions = {row["path"]: row for row in r.regions.rows()}
    assert regions["a/b"]["parent"] == regions["a"]["instance"]
    assert (regions["a"]["depth"], regions["a/b"]["depth"]) == (0, 1)
    assert regions["a"]["start"] <= regions["a/b"]["start"] <= regions["a/b"]["end"] <= regions["a"]["end"]


def test_an_exception_closes_the_region(gpu: ScenarioGpu) -> None:
    def body() -> None:
        with pytest.raises(ZeroDivisionError), cuptiprof.region("fails"):
            gpu.launch("in")
            raise ZeroDivisionError
        gpu.launch("out")

    r = collected(gpu, body)
    assert by_name(r) == {"in": "fails", "out": ""}
    assert list(r.regions["is_open"]) == [0]


def test_a_region_left_open_is_marked(gpu: ScenarioGpu) -> None:
    def body() -> None:
        cuptiprof.region("forgotten").__enter__()
        gpu.launch("k")

    r = collected(gpu, body)
    assert by_name(r) == {"k": "forgotten"}
    assert list(r.regions["is_open"]) == [1]
    assert collected(gpu, lambda: gpu.launch("next")).kernels["region"][0] == ""


def test_decorators(gpu: ScenarioGpu) -> None:
    @cuptiprof.region("f", flops=5)
    def f(depth: int) -> int:
        """Doc."""
        gpu.launch(f"k{depth}")
        return depth if depth == 0 else f(depth - 1)

    @cuptiprof.region("g")
    async def g() -> None:
        await asyncio.sleep(0)
        gpu.launch("kg")

    r = collected(gpu, lambda: (f(2), asyncio.run(g())))
    assert f.__name__ == "f" and f.__doc__ == "Doc."
    assert by_name(r) == {"k2": "f", "k1": "f/f", "k0": "f/f/f", "kg": "g"}
    with pytest.raises(TypeError, match="generator"):

        @cuptiprof.region("h")
        def h():  # type: ignore[no-untyped-def]
            yield 1


def test_the_same_object_may_nest(gpu: ScenarioGpu) -> None:
    def body() -> None:
        r = cuptiprof.region("r")
        with r, r:
            gpu.launch("k")
        gpu.launch("after")

    assert by_name(collected(gpu, body)) == {"k": "r/r", "after": ""}


def test_threads_have_stacks_of_their_own(gpu: ScenarioGpu) -> None:
    barrier = threading.Barrier(4)

    def body() -> None:
        def work(i: int) -> None:
            with cuptiprof.region(f"t{i}"):
                barrier.wait()
                for _ in range(100):
                    gpu.launch(f"k{i}")
                barrier.wait()

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    r = collected(gpu, body)
    assert by_name(r) == {f"k{i}": f"t{i}" for i in range(4)}
    assert len(set(r.kernels["thread"])) == 4


def test_tasks_that_interleave_on_one_thread(gpu: ScenarioGpu) -> None:
    def body() -> None:
        async def task(name: str) -> None:
            with cuptiprof.region(name):
                for _ in range(3):
                    await asyncio.sleep(0)
                    gpu.launch(f"k_{name}")
                    with cuptiprof.region("inner"):
                        await asyncio.sleep(0)
                        gpu.launch(f"i_{name}")

        async def main() -> None:
            await asyncio.gather(*(task(n) for n in "abc"))
            gpu.launch("main")

        with cuptiprof.region("serve"):
            asyncio.run(main())
            contextvars.copy_context().run(lambda: gpu.launch("copied"))

    r = collected(gpu, body)
    want = {f"k_{n}": f"serve/{n}" for n in "abc"} | {f"i_{n}": f"serve/{n}/inner" for n in "abc"}
    assert by_name(r) == want | {"main": "serve", "copied": "serve"}
    assert len(r.kernels) == 20


def test_metadata(gpu: ScenarioGpu) -> None:
    def body() -> None:
        with cuptiprof.region("m", flops=2e9, bytes=np.int64(10), step=3, phase="warm/up", none=None):
            gpu.launch("k")
        with cuptiprof.region("plain"):
            pass

    r = collected(gpu, body)
    rows = {row["name"]: row for row in r.regions.rows()}
    assert rows["m"]["flops"] == 2e9
    assert rows["m"]["bytes"] == 10
    assert json.loads(rows["m"]["metadata"]) == {"step": 3, "phase": "warm/up"}
    assert np.isnan(rows["plain"]["flops"]) and rows["plain"]["metadata"] == ""
    assert r.losses["metadata_dropped"] == r.losses["metadata_as_text"] == 0
    with pytest.raises(TypeError):
        cuptiprof.region()
    with pytest.raises(TypeError):
        cuptiprof.region("a", "b")


def test_odd_metadata_is_written_as_text_or_counted(gpu: ScenarioGpu) -> None:
    class Array:
        """A tensor on a GPU: its values cannot be had without waiting for it."""

        shape, dtype, device = (2, 3), "f4", "cuda:0"

        def item(self) -> float:
            raise AssertionError("asked for its value")

    def body() -> None:
        with cuptiprof.region("as it is", shape=(32, 3), sizes=[1, [2]], more={"a": 1}, scalar=np.float32(0.5)):
            pass
        with cuptiprof.region("as text", x=Array(), many=[0] * 1000, which=ValueError("v"), t=np.zeros((4, 5))):
            pass
        with cuptiprof.region("left out", flops="abc", bytes=[1], x=10**5000, y=2):
            pass
        with cuptiprof.region(3), cuptiprof.region(None):
            pass

    r = collected(gpu, body)
    rows = {row["name"]: json.loads(row["metadata"] or "{}") for row in r.regions.rows()}
    assert rows["as it is"] == {"shape": [32, 3], "sizes": [1, [2]], "more": {"a": 1}, "scalar": 0.5}
    assert rows["as text"] == {"x": "Array[2, 3]", "many": "list of 1000", "which": "v", "t": "ndarray[4, 5]"}
    assert rows["left out"] == {"y": 2} and rows.keys() >= {"3", "None"}
    assert r.losses["metadata_dropped"] == 3 and r.losses["metadata_as_text"] == 4
    assert "3 metadata_dropped" in r.losses.line() and "as_text" not in r.losses.line()


def test_a_region_without_parentheses(gpu: ScenarioGpu) -> None:
    @cuptiprof.region
    def forward(n: int) -> int:
        """Doc."""
        gpu.launch("k")
        return n

    class Model:
        @cuptiprof.region
        async def serve(self) -> None:
            gpu.launch("s")

    r = collected(gpu, lambda: (forward(2), asyncio.run(Model().serve())))
    assert forward(3) == 3 and forward.__name__ == "forward" and forward.__doc__ == "Doc."
    assert by_name(r) == {"k": "forward", "s": "Model.serve"}
    with pytest.raises(TypeError, match="generator"):

        @cuptiprof.region
        def pieces():  # type: ignore[no-untyped-def]
            yield 1


def test_slashes_in_names(gpu: ScenarioGpu) -> None:
    from cuptiprof import _core

    def body() -> None:
        with cuptiprof.region("a/b"), cuptiprof.region("c\\d"):
            gpu.launch("k")

    path = collected(gpu, body).kernels["region"][0]
    assert path == "a\\/b/c\\\\d"
    assert _core.split_region_path(path) == ["a/b", "c\\d"]


def test_a_full_ring_is_counted_and_nesting_survives(gpu: ScenarioGpu) -> None:
    """More events than a ring holds in one go: some are lost and counted, and what is left is still properly nested."""

    def body() -> None:
        region = cuptiprof.region
        for _ in range(300_000):
            with region("outer"), region("inner"):
                pass
        time.sleep(0.5)  # the decoder empties the ring
        with region("last"):
            gpu.launch("k")

    r = collected(gpu, body)
    assert by_name(r) == {"k": "last"}
    recorded = len(r.regions)
    assert recorded + r.losses["region_overflow"] + r.losses["budget_evicted"] == 600_001
    assert {row["path"] for row in r.regions.where(np.arange(min(recorded, 1000))).rows()} <= {
        "outer",
        "outer/inner",
        "inner",
    }
