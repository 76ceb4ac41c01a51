"""The other tools, each as it is used for kernels alone, which is the least it can be asked for."""

from __future__ import annotations

import importlib
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.overhead.conditions import CONCURRENT_KERNEL, Condition, Outcome, missing, no_region
from benchmarks.overhead.workloads import Region


def nvtx_alone() -> Condition:
    """NVTX ranges with no tool attached."""
    try:
        nvtx: Any = importlib.import_module("nvtx")
    except ImportError as e:
        return missing("nvtx alone", "peer", str(e))
    return Condition("nvtx alone", "peer", lambda: nvtx.annotate, Outcome)


class _Torch:
    """torch.profiler with CUDA activity, read through ``events()`` as its users do."""

    def __init__(self) -> None:
        self.torch: Any = importlib.import_module("torch")
        self._prof: Any = None

    def start(self) -> Region:
        self._prof = self.torch.profiler.profile(activities=[self.torch.profiler.ProfilerActivity.CUDA])
        self._prof.__enter__()
        record: Region = self.torch.profiler.record_function
        return record

    def stop(self) -> Outcome:
        began = time.perf_counter_ns()
        self._prof.__exit__(None, None, None)
        events = len(self._prof.events())
        self._prof = None
        return Outcome(time.perf_counter_ns() - began, events)


class _Proton:
    """Triton's Proton, CUPTI backend, scopes for regions; its result is a file."""

    def __init__(self) -> None:
        self.proton: Any = importlib.import_module("triton.profiler")
        self._folder: Any = None

    def start(self) -> Region:
        self._folder = tempfile.TemporaryDirectory()
        self.proton.start(str(Path(self._folder.name) / "proton"), backend="cupti")
        scope: Region = self.proton.scope
        return scope

    def stop(self) -> Outcome:
        began = time.perf_counter_ns()
        self.proton.finalize()
        took = time.perf_counter_ns() - began
        self._folder.cleanup()
        return Outcome(took)


class _CuptiPython:
    """NVIDIA's cupti-python: activity buffers, each record a Python object."""

    def __init__(self) -> None:
        self.cupti: Any = importlib.import_module("cupti.cupti")
        self._records = 0

    def start(self) -> Region:
        self._records = 0

        def requested() -> tuple[int, int]:
            return 8 << 20, 0

        def completed(activities: list[Any]) -> None:
            self._records += len(activities)

        self.cupti.activity_register_callbacks(requested, completed)
        self.cupti.activity_enable(CONCURRENT_KERNEL)
        return no_region

    def stop(self) -> Outcome:
        began = time.perf_counter_ns()
        self.cupti.activity_disable(CONCURRENT_KERNEL)
        self.cupti.activity_flush_all(1)
        return Outcome(time.perf_counter_ns() - began, self._records)


PEERS: dict[str, Callable[[], Any]] = {"torch.profiler": _Torch, "Proton": _Proton, "cupti-python": _CuptiPython}


def peers(device: str) -> list[Condition]:
    """All of them; on the stand-in those that need a GPU are rows with the reason."""
    out = [nvtx_alone()]
    for name, make in PEERS.items():
        if device != "cuda":
            out.append(missing(name, "peer", "needs a GPU: it would load NVIDIA's libcupti, not the stand-in"))
            continue
        try:
            tool = make()
        except Exception as e:  # not installed, or not for this driver
            out.append(missing(name, "peer", f"{type(e).__name__}: {e}"))
            continue
        out.append(Condition(name, "peer", tool.start, tool.stop))
    return out
