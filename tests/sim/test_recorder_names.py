"""The recorder in programs that make new names without end: those of today are known, and what is held has a bound."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from nvtx_copy import NvtxCopy

import cuptiprof
from cuptiprof.data.result import Result
from cuptiprof.device.nvtx_injection import nvtx_library
from cuptiprof.flight_recorder.recorder import recorder
from cuptiprof.sim.sim_device import Op, SimDevice

LOST = "(name lost)"
NAMES = 4_000
AT_ONCE = 100  # launches that are on their way together


@pytest.fixture
def device() -> SimDevice:
    return SimDevice()


@pytest.fixture(scope="module")
def nvtx() -> NvtxCopy:
    return NvtxCopy(str(nvtx_library()))


@pytest.fixture(autouse=True)
def environment_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NVTX_INJECTION64_PATH", str(nvtx_library()))


def recording(folder: Path, **more: Any) -> recorder:
    return recorder(**{"device": "sim", "folder": folder, "seconds": None, "budget": "8 MB", "most": 1, **more})


def waited(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.001)
    return condition()


def all_read(rec: recorder, device: SimDevice, launched: int) -> bool:
    """The decoder has seen that many kernels."""

    def came() -> bool:
        assert device._lib.cuptiActivityFlushAll(0) == 0
        return rec._session._session.counts()["kernels_received"] >= launched

    device.synchronize()
    return waited(came)


def looked_after(rec: recorder) -> Callable[[], bool]:
    """Whether the decoder has looked since."""
    counts = rec._session._session.counts
    before = counts()["decoder_ns"]
    return lambda: counts()["decoder_ns"] > before


Scope = Callable[[str], AbstractContextManager[Any]]


def requests(rec: recorder, device: SimDevice, scope: Scope, numbers: range) -> None:
    """A kernel in a scope of its own each, of which the number is its grid as well; the decoder keeps up."""
    for i in numbers:
        with scope(f"request {i}"):
            device.launch("gemm", grid=(i, 1, 1))
        if i % AT_ONCE == 0:
            assert all_read(rec, device, i)


def told(taken: Result, column: str, around: str = "") -> list[int]:
    """Numbers of the requests of which kernels are there, after a look that each has its own name."""
    kernels = taken.kernels.sorted_by("correlation_id")
    numbers = [int(x) for x in kernels["grid_x"]]
    assert [str(name) for name in kernels[column]] == [f"{around}request {i}" for i in numbers]
    return numbers


@pytest.mark.parametrize("live", [False, True])
def test_names_age(device: SimDevice, tmp_path: Path, live: bool) -> None:
    """However many names there have been, those of the rows that are kept are known, and belong to them."""
    on = ["kernel_time[anything]>1s"] if live else []
    launched = 0
    with recording(tmp_path, on=on) as rec:
        with cuptiprof.region("all of it"):
            for part in range(20):
                for i in range(1500):
                    device.launch(f"generated_{launched + i:07d}_{'x' * 60}")
                launched += 1500
                assert all_read(rec, device, launched)  # the decoder keeps up, so that no record is lost
                if part == 10:
                    early = cuptiprof.open(rec.trigger())
                    assert early.kernels["name"][-1].startswith(f"generated_{launched - 1:07d}")
        taken = rec.stop()
    assert taken.losses["texts_lost"] == 0 and taken.losses["budget_evicted"] > 10_000
    kernels = taken.kernels.sorted_by("correlation_id")
    numbers = [int(name.split("_")[1]) for name in kernels["name"]]
    assert numbers == list(range(launched - len(numbers), launched)) and len(numbers) > 3000
    assert set(kernels["region"]) == {"all of it"} and set(taken.regions["name"]) == {"all of it"}


def test_regions_age(device: SimDevice, tmp_path: Path) -> None:
    """What is open stays known, a snapshot keeps its names, and a launch has its own region's or none."""
    with recording(tmp_path) as rec, cuptiprof.region("serve"):
        often = cuptiprof.region("often")
        early = None
        for first in range(1, NAMES, 500):
            requests(rec, device, cuptiprof.region, range(first, first + 500))
            with often:
                pass
            if first == 2_001:
                early = cuptiprof.open(rec.trigger())
        held = rec._session._session.counts()["live_bytes"]
        taken = rec.stop()
    assert early is not None
    numbers = told(early, "region", "serve/")
    assert numbers == list(range(2_501 - len(numbers), 2_501)) and len(numbers) > 1000
    numbers = told(taken, "region", "serve/")
    assert numbers == list(range(NAMES + 1 - len(numbers), NAMES + 1)) and len(numbers) > 1000
    regions = taken.regions
    assert taken.losses["texts_lost"] == taken.losses["configs_lost"] == 0
    assert {"serve", "often", f"request {NAMES}"} < set(regions["name"]) and LOST not in set(regions["path"])
    assert held < 8 << 20


def test_regions_without_launches_age(device: SimDevice, tmp_path: Path) -> None:
    """No buffer comes back meanwhile."""
    with recording(tmp_path) as rec:
        for i in range(1, NAMES + 1):
            with cuptiprof.region(f"request {i}"):
                pass
            if i % AT_ONCE == 0:
                for _ in range(2):  # the first may have begun before
                    assert waited(looked_after(rec))
        taken = rec.stop()
    names = list(taken.regions["name"])
    assert names == [f"request {i}" for i in range(NAMES + 1 - len(names), NAMES + 1)] and len(names) > 1000
    assert taken.losses["texts_lost"] == 0


def test_names_faster_than_they_age(device: SimDevice, tmp_path: Path) -> None:
    """In one go: what finds no room is counted, and what has a name has its own."""
    with recording(tmp_path, budget="5 MB") as rec:
        for i in range(1, NAMES + 1):
            with cuptiprof.region(f"request {i}"):
                device.launch("gemm", grid=(i, 1, 1))
        device.synchronize()
        taken = rec.stop()
    kernels = taken.kernels
    pairs = list(zip(kernels["region"], kernels["grid_x"], strict=True))
    unknown = sum(grid == 0 for _, grid in pairs)
    assert taken.losses["configs_lost"] >= unknown
    assert pairs and all(grid == 0 or name in (f"request {grid}", "(other)", LOST) for name, grid in pairs)
    lost = sum(name in ("(other)", LOST) for name, _ in pairs)
    assert taken.losses["texts_lost"] >= lost


@pytest.mark.parametrize("level", ["launch", "full"])
def test_nvtx_ranges_age(device: SimDevice, nvtx: NvtxCopy, tmp_path: Path, level: str) -> None:
    @contextmanager
    def pushed(name: str) -> Iterator[None]:
        nvtx.push(name.encode())
        yield
        nvtx.pop()

    with recording(tmp_path, sources={"nvtx": level}) as rec, pushed("serve"):
        requests(rec, device, pushed, range(1, NAMES + 1))
        taken = rec.stop()
    numbers = told(taken, "nvtx", "serve/")
    assert numbers == list(range(NAMES + 1 - len(numbers), NAMES + 1)) and len(numbers) > 1000
    assert taken.losses["texts_lost"] == 0


def test_nvtx_start_end_ranges_and_marks_age(device: SimDevice, nvtx: NvtxCopy, tmp_path: Path) -> None:
    @contextmanager
    def started(name: str) -> Iterator[None]:
        number = nvtx.start(name.encode())
        nvtx.mark(name.replace("request", "mark").encode())
        yield
        nvtx.end(number)

    with recording(tmp_path, sources={"nvtx": "full"}) as rec:
        requests(rec, device, started, range(1, NAMES + 1))
        taken = rec.stop()
    numbers = told(taken, "nvtx_start_end")
    assert numbers == list(range(NAMES + 1 - len(numbers), NAMES + 1)) and len(numbers) > 1000
    names = {str(name) for name in taken.markers["name"]}
    assert {f"request {NAMES}", f"mark {NAMES}"} < names and all(n.split()[0] in ("request", "mark") for n in names)
    assert taken.losses["texts_lost"] == 0


@pytest.mark.parametrize("level", ["launch", "full"])
def test_operators_age(device: SimDevice, tmp_path: Path, level: str) -> None:
    """PyTorch's: names that a program gives by record_function; those of torch itself stay."""
    import torch

    with recording(tmp_path, sources={"operators": level}) as rec, torch.profiler.record_function("serve"):
        requests(rec, device, torch.profiler.record_function, range(1, NAMES + 1))
        torch.ones(2).neg()
        taken = rec.stop()
    own = taken.kernels.where(taken.kernels["name"] == "gemm")
    own = own.sorted_by("correlation_id")
    numbers = [int(x) for x in own["grid_x"]]
    assert numbers == list(range(NAMES + 1 - len(numbers), NAMES + 1)) and len(numbers) > 1000
    assert [str(path) for path in own["operator"]] == [f"serve/request {i}" for i in numbers]
    assert taken.losses["texts_lost"] == 0
    if level == "full":
        names = [str(name) for name in taken.operators["name"]]
        assert {"serve", f"request {NAMES}"} < set(names) and LOST not in names


def test_a_graph_that_was_captured_long_ago(device: SimDevice, nvtx: NvtxCopy, tmp_path: Path) -> None:
    """Its capture has the names of then, however many came since."""
    with recording(tmp_path, sources={"nvtx": "launch"}) as rec:
        with cuptiprof.region("captured here"):
            nvtx.push(b"in this range")
            device.call(Op.GRAPH_BEGIN_CAPTURE, graph_id=1, stream=7)
            device.launch("in a graph", stream=7)
            device.call(Op.GRAPH_END_CAPTURE, graph_id=1, stream=7)
            nvtx.pop()
        device.call(Op.GRAPH_INSTANTIATE, graph_id=1, value=2)
        requests(rec, device, cuptiprof.region, range(1, 2501))
        device.run(device.ops(1, Op.GRAPH_LAUNCH, graph_id=2, stream=3))
        device.synchronize()
        taken = rec.stop()
    row = taken.kernels.where(taken.kernels["name"] == "in a graph")
    assert list(row["capture_region"]) == ["captured here"] and list(row["capture_nvtx"]) == ["in this range"]
