"""A real GPU as PyTorch uses it: its current device and stream, its events and graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cuptiprof.device.devices import Device
from cuptiprof.device.driver_gpu import DriverGpu
from cuptiprof.device.gpu import cannot_capture
from cuptiprof.errors import BenchError


class TorchGpu(DriverGpu):
    """PyTorch's current device; what is timed goes to its current stream."""

    def __init__(self, device: Device) -> None:
        import torch

        self._torch: Any = torch
        super().__init__(device, int(torch.cuda.current_device()))
        self._cold: Any = None
        self.synchronize = torch.cuda.synchronize

    def flush_l2(self) -> None:
        if self._cold is None:
            self._cold = self._torch.empty(self.flush_bytes, dtype=self._torch.uint8, device="cuda")
        self._cold.zero_()

    def events(self, count: int) -> Sequence[Any]:
        while len(self._events) < count:
            event = self._torch.cuda.Event(enable_timing=True)
            event.record()  # PyTorch makes the driver's event only now: between two others that would be in their time
            self._events.append(event)
        return self._events

    def record(self, event: Any) -> None:
        event.record()

    def timed_stream(self) -> int:
        return int(self._torch.cuda.current_stream().cuda_stream)

    def passed(self, event: Any) -> bool:
        return bool(event.query())

    def elapsed_ns(self, first: Any, second: Any) -> float:
        return float(first.elapsed_time(second)) * 1e6

    def peak_memory(self, function: Callable[[], object]) -> int | None:
        cuda = self._torch.cuda
        self.synchronize()
        before = int(cuda.memory_allocated())
        cuda.reset_peak_memory_stats()
        function()
        self.synchronize()
        return int(cuda.max_memory_allocated()) - before

    def capture(self, function: Callable[[], object]) -> Callable[[], None]:
        cuda = self._torch.cuda
        if cuda.is_current_stream_capturing():
            raise BenchError("a graph is being captured already", hint="measure outside of torch.cuda.graph")
        graph = cuda.CUDAGraph()
        self.synchronize()
        try:
            # After a capture that failed torch.cuda.graph leaves its own stream the current one.
            with cuda.stream(cuda.current_stream()), cuda.graph(graph):
                function()
        except cuda.OutOfMemoryError:
            raise
        except RuntimeError as e:
            raise cannot_capture(str(e).partition("\n")[0] or type(e).__name__) from e
        replay: Callable[[], None] = graph.replay
        return replay
