"""Every launch is a row or a counted loss: dry pools, small budgets, spilling, a full disk."""

from __future__ import annotations

import errno
import threading
from pathlib import Path

import pytest
from gpu import ScenarioGpu
from scenarios import collected, launch_at_decoder_pace

import cuptiprof

pytest_plugins = ["behaviour_fixtures"]


def other_rows(gpu: ScenarioGpu) -> int:
    """Rows of devices and contexts in a session here, which share the budget with kernels."""
    r = collected(gpu, lambda: gpu.launch("k"), activities=["kernel"])
    return len(r.devices) + len(r.contexts)


def test_launches_equal_records_plus_losses_when_the_pool_is_dry(gpu: ScenarioGpu) -> None:
    gpu.prepare("k")
    each = 20_000
    with cuptiprof.profile(
        device=gpu.device, activities=["kernel"], buffer_size="64 KB", buffer_count=1, budget="16 MB"
    ) as prof:
        threads = [threading.Thread(target=lambda: gpu.launch("k", count=each)) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    r = prof.result()
    counts = r.metadata["launches"]
    assert counts["launches"] == 8 * each
    if gpu.simulated:  # how fast a real GPU fills a buffer is its own affair
        assert r.losses["pool_exhausted"] > 0
    assert r.losses["unreconciled_launches"] == 0
    assert counts["launches"] == len(r.kernels) + counts["kernels_lost_in_pool"]


@pytest.mark.parametrize("keep", ["latest", "first"])
def test_what_is_kept_is_the_newest_or_the_oldest(gpu: ScenarioGpu, keep: str) -> None:
    thousands = 250
    gpu.prepare("oldest", "k", "newest")
    others = other_rows(gpu)
    with cuptiprof.profile(device=gpu.device, activities=["kernel"], keep=keep, budget="12 MB") as prof:
        launch_at_decoder_pace(gpu, prof, "oldest", 1000)
        launch_at_decoder_pace(gpu, prof, "k", 1000 * (thousands - 2))
        launch_at_decoder_pace(gpu, prof, "newest", 1000)
    r = prof.result()
    assert r.losses["pool_exhausted"] == 0
    rows = len(r.kernels)
    assert rows + r.losses["budget_evicted"] == 1000 * thousands + others - len(r.devices) - len(r.contexts)
    assert 1000 < rows < 1000 * thousands
    names = list(r.kernels["name"])
    kept, gone = ("newest", "oldest") if keep == "latest" else ("oldest", "newest")
    assert names.count(kept) == 1000 and names.count(gone) == 0


def test_spill_keeps_everything(gpu: ScenarioGpu, tmp_path: Path) -> None:
    with (
        cuptiprof.profile(
            device=gpu.device, activities=["kernel"], keep="spill", budget="16 MB", spill_dir=str(tmp_path)
        ) as prof,
        cuptiprof.region("spilled"),
    ):
        for i in range(40):
            launch_at_decoder_pace(gpu, prof, f"kernel_{i % 3}", 10_000, grid=(i + 1, 1, 1))
    r = prof.result()
    assert prof._spill is not None and prof._spill.segments > 1
    assert r.losses["spill_dropped"] == 0
    assert len(r.kernels) == len(set(r.kernels["correlation_id"])) == 400_000
    assert set(r.kernels["name"]) == {"kernel_0", "kernel_1", "kernel_2"}
    assert sorted(set(r.kernels["grid_x"])) == list(range(1, 41))
    assert set(r.kernels["region"]) == {"spilled"}


def test_a_disk_that_fills_while_spilling(gpu: ScenarioGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program goes on; the rows are counted and the report says why."""
    import pyarrow as pa

    class Full:
        def __init__(self, *args: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    others = other_rows(gpu)
    monkeypatch.setattr(pa, "OSFile", Full)
    with cuptiprof.profile(
        device=gpu.device, activities=["kernel"], keep="spill", budget="16 MB", spill_dir=str(tmp_path)
    ) as prof:
        launch_at_decoder_pace(gpu, prof, "k", 200_000)
    r = prof.result()
    assert len(r.kernels) + r.losses["spill_dropped"] == 200_000 + others - len(r.devices) - len(r.contexts)
    assert r.losses["spill_dropped"] > 0
    assert "No space left" in str(r.summary())
