"""The memory of the simulated device as ``torch.cuda.memory`` tells of it: storages of CPU tensors count as blocks of a model of torch's
caching allocator, and torch's own functions ask that one."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cuptiprof.sim.pytorch.caching_allocator import TOTAL, CachingAllocator, Frames

_OWN = str(Path(__file__).parent)
Undo = list[Callable[[], None]]


class DeviceMemory:
    """What the operators of all threads allocate."""

    def __init__(self) -> None:
        self.allocator = CachingAllocator(_python_frames)
        self._live: dict[int, weakref.ref[Any]] = {}

    def ran(self, arguments: Any, out: Any, is_tensor: Callable[[Any], bool]) -> None:
        """An operator has run: what it returns that is in nobody's memory yet was allocated by it.

        Raises:
            SimulatedOutOfMemory: the device has no room for it.
        """
        known: set[int] = set()
        for tensor in _tensors(arguments, is_tensor):
            known.add(tensor.untyped_storage()._cdata)
        for tensor in _tensors(out, is_tensor):
            storage = tensor.untyped_storage()
            key = storage._cdata
            if key not in known and key not in self._live and storage.nbytes():
                block = self.allocator.allocate(storage.nbytes())
                self._live[key] = weakref.ref(storage, functools.partial(self._died, key, block))

    def _died(self, key: int, block: Any, storage: Any) -> None:
        del self._live[key]
        self.allocator.release(block)


def _tensors(value: Any, is_tensor: Callable[[Any], bool]) -> list[Any]:
    if is_tensor(value):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [tensor for each in value for tensor in _tensors(each, is_tensor)]


def _python_frames() -> Frames:
    """The stack as torch gathers it: of Python, the innermost first; without the simulation's."""
    out: Frames = []
    frame: Any = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_OWN):
            out.append({"name": code.co_name, "filename": code.co_filename, "line": frame.f_lineno or 0})
        frame = frame.f_back
    return out


def put_memory_functions(torch: Any, allocator: CachingAllocator) -> Undo:
    """Give torch the functions that its Python part calls, and that a build without CUDA lacks. Returns how to undo that."""
    undo: Undo = []

    def put(owner: Any, name: str, value: Any) -> None:
        missing = object()
        original = vars(owner).get(name, missing)

        def put_back() -> None:
            if original is not missing:
                setattr(owner, name, original)
            elif name in vars(owner):
                delattr(owner, name)

        undo.append(put_back)
        setattr(owner, name, value)

    def record(
        enabled: Any, context: Any = None, stacks: str = "all", max_entries: int = sys.maxsize, *more: Any
    ) -> None:
        allocator.record_history(enabled, context, max_entries)

    def set_fraction(fraction: float, device: int) -> None:
        allocator.limit = int(fraction * TOTAL)

    def reset_peaks(device: int) -> None:
        for stat in allocator.stats.values():
            stat.peak = stat.current

    def nested(device: int) -> dict[str, Any]:
        return {name: {"all": vars(stat)} for name, stat in allocator.stats.items()}

    for name, function in (
        ("_cuda_record_memory_history", record),
        ("_cuda_isHistoryEnabled", lambda: allocator.is_recording),
        ("_cuda_memorySnapshot", lambda *pool: allocator.snapshot()),
        ("_cuda_memoryStats", nested),
        ("_cuda_resetPeakMemoryStats", reset_peaks),
        ("_cuda_emptyCache", allocator.empty_cache),
        ("_cuda_setMemoryFraction", set_fraction),
        ("_cuda_getMemoryFraction", lambda device: allocator.limit / TOTAL),
        ("_cuda_setMemoryMetadata", lambda text: setattr(allocator, "metadata", text)),
        ("_cuda_getMemoryMetadata", lambda: allocator.metadata),
    ):
        put(torch._C, name, function)
    memory = torch.cuda.memory
    put(memory, "is_initialized", lambda: True)
    put(memory, "_lazy_init", lambda: None)
    put(memory, "_get_device_index", lambda device=None, *args, **kwargs: 0)
    return undo
