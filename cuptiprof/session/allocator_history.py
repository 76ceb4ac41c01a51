"""The history of PyTorch's caching allocator, switched on while a session with the activity "allocator" runs.

It is torch's own (``torch.cuda.memory._record_memory_history``), read through ``_snapshot()`` when the session stops. Where the program
has switched it on itself, or does while the session runs, it stays as the program has it. torch is never imported here, and CUDA never
initialised: the history begins when the program does either.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from cuptiprof.regions.when_imported import WhenImported
from cuptiprof.session.unix_times import ClockPair, clock_reading

_BYTES_OF_AN_ENTRY = 2048
"""of the budget, for each entry that the history may have: what it takes in torch, and here while it is read"""
_FEWEST = 10_000
THREAD_MARK = "cuptiprof thread "
"""what the events of the thread that the history was switched on on are marked with, and its system thread ID"""


@dataclass(frozen=True)
class TakenHistory:
    """What the allocator told at the end of a cycle.

    Attributes:
        snapshot: torch's, None where there is none.
        since_ns, until_ns: ns of Unix time: of what came between the cycle is made.
        clocks: readings at the start of the session and at its end, or that of the cycle.
        overwritten: events that the history had no room for.
        stats: device ordinal -> ``torch.cuda.memory_stats`` at the end.
        facts: for ``metadata["allocator"]``.
        marked_thread: system thread ID of the thread whose events all say that they are its; 0: none does.
        note: why there is no snapshot, or what it lacks; empty: nothing.
    """

    snapshot: dict[str, Any] | None
    since_ns: int
    until_ns: int
    clocks: tuple[ClockPair, ClockPair]
    overwritten: int
    stats: dict[int, dict[str, int]]
    facts: dict[str, Any]
    marked_thread: int
    note: str


_STATS = ("allocated_bytes", "reserved_bytes", "active_bytes", "requested_bytes")


class AllocatorHistory:
    """Entered when a session starts, left when it has ended."""

    def __init__(self, budget: int, *, with_frames: bool) -> None:
        """`budget`: of the session, bytes. `with_frames`: keep the Python stack of each allocation."""
        self._entries = max(budget // _BYTES_OF_AN_ENTRY, _FEWEST)
        self._with_frames = with_frames
        self._torch: Any = None
        self._waiting: WhenImported | None = None
        self._undo: list[Callable[[], None]] = []
        self._ours = self._running = self._closed = False
        self._note = "PyTorch was not imported"
        self._begin = self._clock = clock_reading()
        self._counted: dict[int, tuple[int, int]] = {}
        self._marked_thread = 0
        self._mark: Callable[[], str] | None = None

    def __enter__(self) -> AllocatorHistory:
        torch = sys.modules.get("torch")
        if torch is not None:
            self._torch_is_here(torch)
        else:
            self._waiting = WhenImported("torch", self._torch_is_here)
            self._waiting.wait()
        return self

    def __exit__(self, *error: object) -> None:
        """The history is as it was; may be called again."""
        self._closed = True
        if self._waiting is not None:
            self._waiting.remove()
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()
        self._running = False

    def _torch_is_here(self, torch: ModuleType) -> None:
        if self._closed:
            return
        self._torch = torch
        cuda: Any = torch.cuda
        self._note = "PyTorch has not initialised CUDA"
        if torch.backends.cuda.is_built() and not cuda.is_initialized():
            cuda._lazy_call(self._switch_on)  # switching it on would initialise CUDA
        else:
            self._switch_on()

    def _switch_on(self) -> None:
        """torch calls it when it initialises CUDA: nothing may be raised there."""
        memory, is_enabled = self._torch.cuda.memory, getattr(self._torch._C, "_cuda_isHistoryEnabled", None)
        if self._closed or self._running:
            return
        if is_enabled is None:
            self._note = "this PyTorch has no caching allocator of CUDA's"
            return
        original = memory._record_memory_history
        try:
            if not is_enabled():
                self._undo.append(lambda: self._switch_off(original))
                context = "alloc" if self._with_frames else None
                original("all", context=context, stacks="python", max_entries=self._entries)
                self._ours = True
        except (RuntimeError, TypeError, AttributeError) as e:
            self._note = (
                f"PyTorch's allocator keeps no history: {str(e).splitlines()[0] if str(e) else type(e).__name__}"
            )
            self._undo.clear()
            return
        self._watch(memory, original)
        self._mark_thread(memory)
        self._running, self._note = True, ""
        self.forget()

    def _watch(self, memory: Any, original: Callable[..., None]) -> None:
        """When the program switches the history on or off itself it is the program's from then on."""

        def record(*args: Any, **kwargs: Any) -> None:
            original(*args, **kwargs)
            self._ours = False
            if not self._torch._C._cuda_isHistoryEnabled():
                self._note = "the program switched the allocator's history off"

        def put_back() -> None:
            if memory._record_memory_history is record:
                memory._record_memory_history = original

        self._undo.append(put_back)
        memory._record_memory_history = record

    def _mark_thread(self, memory: Any) -> None:
        """torch does not say which thread an event is of, but newer versions say what that thread has marked its own with."""
        get, mark = (getattr(memory, f"_{verb}_memory_metadata", None) for verb in ("get", "set"))
        if get is None or mark is None or get():
            return
        thread = threading.get_ident()
        text = f"{THREAD_MARK}{threading.get_native_id()}"

        def put_back() -> None:
            if threading.get_ident() == thread and hasattr(self._torch._C, "_cuda_isHistoryEnabled") and get() == text:
                mark("")

        def own_mark() -> str:
            return str(get()) if threading.get_ident() == thread else text

        self._undo.append(put_back)
        mark(text)
        self._marked_thread, self._mark = threading.get_native_id(), own_mark

    def _switch_off(self, original: Callable[..., None]) -> None:
        if self._ours and hasattr(self._torch._C, "_cuda_isHistoryEnabled"):  # a simulated device has taken it along
            original(None)
        self._ours = False

    def forget(self) -> None:
        """What came until now is of no cycle."""
        self._clock = clock_reading()
        if self._running:
            self._counted = {d: _events(stats) for d, stats in self._stats().items()}

    def take(self) -> TakenHistory:
        """What came since the last `forget`; the history goes on. May be called again for the same."""
        snapshot, note, stats, lost = None, self._note, {}, 0
        if self._running:
            stats = self._stats()
            try:
                snapshot = self._torch.cuda.memory._snapshot()
            except RuntimeError as e:
                note = f"PyTorch's allocator gave no snapshot: {str(e).splitlines()[0]}"
        until = clock_reading()
        if snapshot is not None:
            lost = _missing(snapshot, self._counted, stats, self._clock.unix // 1000)
        if self._running and self._mark is not None and not self._mark().startswith(THREAD_MARK):
            self._marked_thread = 0  # the program has marks of its own now
        torch_version = str(getattr(self._torch, "__version__", ""))
        return TakenHistory(
            snapshot,
            self._clock.unix,
            until.unix,
            (self._begin, until),
            lost,
            {device: {key: of[f"{key}.all.current"] for key in _STATS if f"{key}.all.current" in of} for device, of in stats.items()},
            {"torch": torch_version, "max_entries": self._entries if self._ours else None, "frames": self._with_frames},
            self._marked_thread,
            note,
        )  # fmt: skip

    def _stats(self) -> dict[int, dict[str, int]]:
        cuda = self._torch.cuda
        return {device: cuda.memory.memory_stats(device) for device in range(max(cuda.device_count(), 1))}


def _events(stats: dict[str, int]) -> tuple[int, int]:
    return stats.get("allocation.all.allocated", 0), stats.get("allocation.all.freed", 0)


def _missing(
    snapshot: dict[str, Any], before: dict[int, tuple[int, int]], stats: dict[int, dict[str, int]], since_us: int
) -> int:
    """Allocations and releases that torch counted and the history does not have: it keeps the last `max_entries` entries."""
    missing = 0
    for device, trace in enumerate(snapshot.get("device_traces", [])):
        actions = [entry["action"] for entry in trace if entry.get("time_us", 0) >= since_us]
        counted, already = _events(stats.get(device, {})), before.get(device, (0, 0))
        for action, now, then in zip(("alloc", "free_requested"), counted, already, strict=True):
            missing += max(now - then - actions.count(action), 0)
    return missing
