"""What a session says of itself while it runs, beside its result."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from watched_programs import until

import cuptiprof
from cuptiprof.errors import SessionError
from cuptiprof.sim.sim_device import Op, SimDevice
from cuptiprof.watch.live_figures import MOST_NAMES, LiveFigures


def busy_ns(result: cuptiprof.Result) -> int:
    tables = [result.kernels, result.memcpys, result.memsets]
    start = np.concatenate([t["start"] for t in tables])
    end = np.concatenate([t["end"] for t in tables])
    order = np.argsort(start)
    start, end = start[order], end[order]
    before = np.maximum.accumulate(np.concatenate([[start[0]], end[:-1]]))
    return int(np.maximum(end - np.maximum(start, before), 0).sum())


@pytest.mark.parametrize("keep", ["latest", "spill"])
def test_the_last_figures_are_those_of_the_result(sim: SimDevice, keep: str) -> None:
    seen: list[LiveFigures] = []
    with cuptiprof.profile(
        device="sim", on_live=seen.append, keep=keep, budget="5 MB", activities=["kernel", "memcpy", "memset", "memory"]
    ) as prof:
        for i in range(120):
            with cuptiprof.region("train"):
                sim.launch("gemm", count=600, duration_ns=700)
                with cuptiprof.region("fwd"):
                    sim.launch("_Z4gradPf", count=300, duration_ns=300, stream=1 + i % 2)
            sim.run(sim.ops(3, Op.MEMCPY, bytes=1000, copy_kind=1, duration_ns=100))
    result, last = prof.result(), seen[-1]
    assert last.state == "stopped" and last.simulated and last.pid > 0
    assert last.launches == result.metadata["launches"]["launches"] == 120 * 900
    kernels = {k.name: (k.count, k.ns) for k in last.kernels}
    gemm, grad = kernels["gemm"], kernels["grad(float*)"]
    assert gemm == (gemm[0], gemm[0] * 700) and grad == (grad[0], grad[0] * 300)
    # The program launches as fast as it can: on a busy machine the decoder falls behind, which is a loss (no buffer was free, a launch
    # without its region), and a small budget evicts rows before they are looked at. As many as are said.
    lost = dict(last.losses)
    exhausted, orphans = lost.pop("pool_exhausted", 0), lost.pop("orphan_correlations", 0)
    lost.pop("region_overflow", 0)
    regions = {r.name: r.count for r in last.regions}
    assert regions.pop("", 0) <= orphans and sum(regions.values()) >= gemm[0] + grad[0] - orphans
    assert set(regions) == {"train", "train/fwd"} and regions["train"] <= gemm[0] and regions["train/fwd"] <= grad[0]
    (copies,) = last.copies
    assert (copies.name, copies.bytes) == ("HtoD", 1000 * copies.count)
    assert gemm[0] + grad[0] + copies.count + last.missed + exhausted == 108000 + 360
    assert gemm[0] <= 72000 and grad[0] <= 36000 and copies.count <= 360
    if keep == "spill":  # nothing was evicted, so that the rows are all there
        assert not lost and last.missed == 0
        assert len(result.kernels) == gemm[0] + grad[0]
        (gpu,) = last.gpus
        assert gpu.pct == pytest.approx(100 * busy_ns(result) / (1e9 * last.elapsed_s), rel=1e-9)
    else:
        assert lost == {"budget_evicted": result.losses["budget_evicted"]} and len(result.kernels) < 108000


def test_figures_come_once_a_second_with_what_is_new(sim: SimDevice) -> None:
    seen: list[LiveFigures] = []
    with cuptiprof.profile(device="sim", on_live=seen.append):
        sim.launch("early", count=50)
        until(lambda: len(seen) == 1)
        sim.launch("late", count=70)
        until(lambda: len(seen) == 2)
    first, second = seen[:2]
    assert {k.name: k.recent_count for k in first.kernels} == {"early": 50}
    assert {k.name: (k.count, k.recent_count) for k in second.kernels} == {"early": (50, 0), "late": (70, 70)}
    assert second.recent_launches == 70
    assert 0.9 < second.interval_s < 5
    assert second.elapsed_s > first.elapsed_s


def test_a_watcher_that_fails_is_called_no_more(sim: SimDevice, capsys: pytest.CaptureFixture[str]) -> None:
    calls = []

    def fails(figures: LiveFigures) -> None:
        calls.append(figures)
        raise RuntimeError("of the watcher")

    with cuptiprof.profile(device="sim", on_live=fails) as prof:
        until(lambda: calls)
        sim.launch("k", count=5)
    assert len(calls) == 1 and len(prof.result().kernels) == 5
    assert "RuntimeError: of the watcher" in capsys.readouterr().err


def test_nothing_is_left_of_it(sim: SimDevice) -> None:
    for _ in range(3):
        with cuptiprof.profile(device="sim", on_live=lambda figures: None):
            sim.launch("k")
            assert any(t.name == "cuptiprof-live" for t in threading.enumerate())
        assert not any(t.name == "cuptiprof-live" for t in threading.enumerate())


def test_a_session_that_is_not_watched_makes_no_sums(sim: SimDevice) -> None:
    prof = cuptiprof.profile(device="sim")
    with prof, pytest.raises(SessionError, match="makes no sums"):
        prof._session.live_sums(1)


def test_many_and_hostile_names(sim: SimDevice) -> None:
    seen: list[LiveFigures] = []
    with cuptiprof.profile(device="sim", on_live=seen.append):
        for i in range(200):
            sim.launch(f"\x1b[31m\u202ename{i}" + "x" * 60_000 * (i % 50 == 0), count=1)
    last = seen[-1]
    assert last.kernel_names == 200 and len(last.kernels) == MOST_NAMES
    for kernel in last.kernels:
        assert kernel.name.isprintable() and kernel.name.startswith("\\x1b[31m\\u202ename") and len(kernel.name) < 3000


def test_dropped_without_a_stop() -> None:
    prof = cuptiprof.profile(device="sim", on_live=lambda figures: None).start()
    del prof
    until(lambda: not any(t.name == "cuptiprof-live" for t in threading.enumerate()))


def test_looking_does_not_wait_for_the_decoder(sim: SimDevice) -> None:
    """100 looks while 400,000 kernels come take less than a few ms each."""
    prof = cuptiprof.profile(device="sim", on_live=lambda figures: None, activities=["kernel"])
    with prof:
        work = threading.Thread(target=lambda: sim.launch("k", count=400_000, duration_ns=100))
        work.start()
        took = []
        for _ in range(100):
            began = time.perf_counter()
            prof._session.live_sums(MOST_NAMES)
            took.append(time.perf_counter() - began)
            time.sleep(0.002)
        work.join()
    assert sorted(took)[50] < 0.02
