"""The same work on a GPU (a torch loop) and on the stand-in, for benchmarks and probes of counters.

``small`` and ``other`` are short kernels of two kinds, ``busy`` is one long kernel, ``step`` is a training-like step
that ends synchronised. On the stand-in kernels are almost free, so that what is timed is the profiler's own host cost.

It is what is run, as a user's program would, and not a face of the GPU (``cuptiprof.device.gpu``): that one needs a libcupti,
and here some questions are what happens when CUPTI comes after the work.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Protocol

STAND_IN = (
    "the stand-in has no GPU behind it: times are the profiler's own host cost, none is a measurement of hardware"
)


class Work(Protocol):
    """What the benchmarks run."""

    device: str

    def small(self, count: int) -> None:
        """Launch `count` short kernels."""

    def other(self, count: int) -> None:
        """Launch `count` short kernels of another kind."""

    def busy(self) -> None:
        """Launch one kernel of some milliseconds."""

    def step(self) -> None:
        """Matrix products, layer norms and softmaxes; returns when they are done."""

    def synchronize(self) -> None:
        """Wait for the device."""


class TorchWork:
    """On the first GPU."""

    device = "cuda"

    def __init__(self) -> None:
        import torch

        self._torch: Any = torch
        torch.backends.cuda.matmul.allow_tf32 = False
        self._x = torch.zeros(1 << 20, device="cuda")
        self._a = torch.randn(1024, 1024, device="cuda")
        self._b = torch.empty_like(self._a)
        self._large = torch.ones(4096, 4096, device="cuda")
        self._product = torch.empty_like(self._large)
        self._norm = torch.nn.LayerNorm(1024, device="cuda")
        for _ in range(3):
            self.small(1)
            self.other(1)
            self.busy()
            self.step()

    def small(self, count: int) -> None:
        for _ in range(count):
            self._x.add_(1.0)

    def other(self, count: int) -> None:
        for _ in range(count):
            self._x.sin_()

    def busy(self) -> None:
        self._torch.mm(self._large, self._large, out=self._product)

    def step(self) -> None:
        with self._torch.no_grad():
            for _ in range(100):
                self._torch.mm(self._a, self._a, out=self._b)
                self._torch.softmax(self._norm(self._b), -1)
        self.synchronize()

    def synchronize(self) -> None:
        self._torch.cuda.synchronize()


class SimWork:
    """On the simulated device."""

    device = "sim"

    def __init__(self, busy_ns: int = 3_000_000) -> None:
        from cuptiprof.sim.sim_device import Op, SimDevice

        self.sim = SimDevice()
        shape = {"grid": (4096, 1, 1), "block": (256, 1, 1), "registers_per_thread": 32}

        def kernel(name: str, ns: int) -> Any:
            return self.sim.ops(1, Op.KERNEL, name=name, duration_ns=ns, **shape)

        self._small, self._other = kernel("_Z9add_constPff", 10), kernel("_Z9sin_inplacePf", 10)
        self._busy = kernel("sgemm_128x128_nn", busy_ns)
        names = ["sgemm_64x64_nn", "_Z10layer_normPfS_", "_Z7softmaxPfS_"]
        step = [kernel(n, 1000) for n in names]
        self._step = self.sim.prepare(_joined(step, 100))

    def small(self, count: int) -> None:
        self.sim.run(self._small.repeat(count))

    def other(self, count: int) -> None:
        self.sim.run(self._other.repeat(count))

    def busy(self) -> None:
        self.sim.run(self._busy)

    def step(self) -> None:
        self._step()
        self.synchronize()

    def synchronize(self) -> None:
        self.sim.synchronize()


def _joined(parts: list[Any], times: int) -> Any:
    import numpy as np

    return np.tile(np.concatenate(parts), times)


def make_work(device: str) -> Work:
    """Work for "cuda" or "sim"."""
    return TorchWork() if device == "cuda" else SimWork()


@contextlib.contextmanager
def instant_waits(device: str) -> Iterator[None]:
    """On the stand-in: sessions opened here have a clock that jumps where a GPU would be waited for.

    Its waits are sleeps of 50 us and more, which would be most of what replay and synchronising cost.
    """
    from cuptiprof.device.devices import SimulatedDevice
    from cuptiprof.session import profile

    def opened(spec: str | None, **options: Any) -> SimulatedDevice:
        return SimulatedDevice(virtual_clock=True)

    if device != "sim":
        yield
        return
    ordinary, profile.open_device = profile.open_device, opened
    try:
        yield
    finally:
        profile.open_device = ordinary


def gpu_name(device: str) -> str:
    """What stands in reports for the device."""
    if device != "cuda":
        return "none (stand-in)"
    import torch

    return str(torch.cuda.get_device_name(0))
