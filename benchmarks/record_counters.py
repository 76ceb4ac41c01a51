"""Counter images for fixtures, through CUPTI's own calls (the ctypes face that the stand-in's tests use)."""

from __future__ import annotations

import ctypes
import gzip
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RANGES = 4
METRICS = [
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "sm__inst_executed.avg.per_cycle_active",
    "sm__inst_executed.sum",
    "dram__bytes_read.sum",
]


def _objects() -> Any:
    folder = str(ROOT / "tests" / "sim")
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module("counter_objects")


def _api(device: str, library: str) -> Any:
    """`device`: "sim", "cuda", or "offline": NVIDIA's library with no driver, for evaluating."""
    api = importlib.import_module(_objects().CounterApi.__module__).CounterApi()
    if device == "offline":
        api.lib = ctypes.CDLL(library)
    elif device == "cuda":
        api.lib = _Both(ctypes.CDLL(library), ctypes.CDLL("libcuda.so.1"))
    return api


class _Both:
    """Functions of libcupti, and of the driver where their name says so; the stand-in has both in one library."""

    def __init__(self, cupti: ctypes.CDLL, driver: ctypes.CDLL) -> None:
        self._cupti, self._driver = cupti, driver

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cupti if name.startswith("cupti") else self._driver, name)


def chip_name(device: str, library: str) -> str:
    """As cuptiDeviceGetChipName says it; device 0."""
    api = _api(device, library)
    return str(api.call("cuptiDeviceGetChipName").chip.decode())


def write_compressed(path: Path, data: bytes) -> None:
    """Compressed, the same bytes for the same data."""
    path.write_bytes(gzip.compress(data, mtime=0))


def _write(folder: Path, name: str, image: Any) -> int:
    write_compressed(folder / name, bytes(image))
    return len(image)


def ranges(device: str, library: str, chip: str, run: Callable[[], None], folder: Path) -> dict[str, Any]:
    """User ranges of one pass around the work; writes ``counter_data.bin.gz``. Values as NVIDIA's host call gave them."""
    objects = _objects()
    r = objects.Ranges(_api(device, library), METRICS, mode=objects.USER, replay=objects.USER_REPLAY, rows=RANGES, max_ranges=RANGES, chip=chip)  # fmt: skip
    try:
        r.start()
        for i in range(RANGES):
            r.push(f"range{i}")
            run()
            r.pop()
        complete = bool(r.stop().all_submitted)
        dropped = r.decode()
        return {
            "metrics": METRICS,
            "one_pass": complete,
            "dropped": dropped,
            "bytes": _write(folder, "counter_data.bin.gz", r.data),
            "config_bytes": len(r.config),
            "names": [r.name(i) for i in range(r.count())],
            "values": [r.values(i) for i in range(r.count())],
        }
    finally:
        r.disable()


def samples(device: str, library: str, chip: str, run: Callable[[], None], folder: Path) -> dict[str, Any]:
    """PM samples while the work runs; writes ``pm_sampling.bin.gz``."""
    objects = _objects()
    s = objects.Sampler(_api(device, library), METRICS[:3], chip=chip, samples=64)
    try:
        s.do("Start")
        for _ in range(20):
            run()
        s.do("Stop")
        s.decode()
        kept = min(s.count(), 64)
        return {
            "metrics": METRICS[:3],
            "bytes": _write(folder, "pm_sampling.bin.gz", s.data),
            "times": [list(s.times(i)) for i in range(kept)],
            "values": [s.values(i) for i in range(kept)],
        }
    finally:
        s.do("Disable")


def availability(device: str, library: str, folder: Path) -> dict[str, Any]:
    """The counter-availability image of ranges and of PM sampling; writes ``availability.bin.gz`` and one more."""
    api = _api(device, library)
    out: dict[str, Any] = {}
    for name, function, who in (
        ("availability.bin.gz", "cuptiProfilerGetCounterAvailability", {"context": api.context()}),
        ("pm_availability.bin.gz", "cuptiPmSamplingGetCounterAvailability", {"device": 0}),
    ):
        size = api.call(function, **who).image_size
        image = (ctypes.c_uint8 * size)()
        api.call(function, **who, image_size=size, image=image)
        out[name] = _write(folder, name, image)
    return out
