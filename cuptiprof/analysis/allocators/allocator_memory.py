"""What the history of PyTorch's caching allocator says: levels over time, who held memory at the peak, who allocated how much.

Sizes are those that were asked for. Memory is allocated from ``alloc`` to ``free_requested``, as ``torch.cuda.memory_allocated()`` counts
it; what torch's own counters add is the rounding of blocks (to 512 bytes and more).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from cuptiprof.analysis.operator_work.operator_places import KNOWN, OUTSIDE
from cuptiprof.analysis.trees.region_tree import NO_REGION
from cuptiprof.data.enums import ALLOCATOR_ACTIONS, BLOCK_STATES, code_of
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table

Int64 = npt.NDArray[np.int64]
UNATTRIBUTED = "(unattributed)"
NO_OPERATOR = "(no operator)"
NO_MODULE = "(no module)"
EARLIER = "(before the session)"
_OF_A_MODE = "PythonDispatchMode"
"""what torch calls the Python of a dispatch mode within an operator; the simulated device is one"""

ALLOC, FREED, SEGMENT, SEGMENT_FREED, MAPPED, UNMAPPED, OOM = (
    code_of(ALLOCATOR_ACTIONS, text)
    for text in ("alloc", "free_requested", "segment_alloc", "segment_free", "segment_map", "segment_unmap", "oom")
)
_ALLOCATED, _FREE = code_of(BLOCK_STATES, "active_allocated"), code_of(BLOCK_STATES, "inactive")


def devices(result: Result) -> list[int]:
    """Ordinals of the devices whose allocator told something."""
    tables = (result.allocator_events, result.allocator_blocks)
    return sorted({int(d) for table in tables for d in np.unique(table["device"])})


@dataclass(frozen=True)
class MemoryTimeline:
    """The memory of one device, one value an event of its allocator.

    Attributes:
        device: ordinal.
        time: ns, run clock.
        allocated, reserved: bytes after the event: in tensors; had from CUDA.
        before: both before the first event.
        rows: row of the event in ``allocator_events``.
    """

    device: int
    time: Int64
    allocated: Int64
    reserved: Int64
    before: tuple[int, int]
    rows: Int64

    def peak(self) -> tuple[int, int]:
        """(bytes, index of the event) when most was allocated, first; index -1: before the first event."""
        if not len(self.allocated) or self.before[0] >= self.allocated.max():
            return self.before[0], -1
        at = int(np.argmax(self.allocated))
        return int(self.allocated[at]), at


def memory_timeline(result: Result, device: int) -> MemoryTimeline:
    """Allocated and reserved bytes of a device over time, reckoned back from what the allocator had at the end: what came before the
    session, and what the history had no room for, is in it."""
    events, blocks = result.allocator_events, result.allocator_blocks
    rows = np.flatnonzero(events["device"] == device)
    size, action = events["bytes"][rows].astype(np.int64), events["action"][rows]
    own = blocks.where(blocks["device"] == device)
    _, first = np.unique(own["segment"], return_index=True)
    end = (int(own["requested"][own["state"] == _ALLOCATED].sum()), int(own["segment_bytes"][first].sum()))
    levels, before = [], []
    for up, down, last in (((ALLOC,), (FREED,), end[0]), ((SEGMENT, MAPPED), (SEGMENT_FREED, UNMAPPED), end[1])):
        change = np.where(np.isin(action, up), size, np.where(np.isin(action, down), -size, 0))
        start = last - int(change.sum())
        levels.append(start + np.cumsum(change))
        before.append(start)
    return MemoryTimeline(device, events["timestamp"][rows], levels[0], levels[1], (before[0], before[1]), rows)


@dataclass(frozen=True)
class Blocks:
    """What was allocated within the session: row of its ``alloc`` in ``allocator_events``, and of its release (a row after the last: none)."""

    alloc: Int64
    free: Int64

    def held_after(self, row: int) -> Int64:
        """Rows of ``alloc`` of what was held when the event of that row had happened."""
        return self.alloc[(self.alloc <= row) & (self.free > row)]


def blocks_of(events: Table, device: int) -> Blocks:
    """Allocations and their releases. An address is one allocation's until it is released, or allocated again."""
    of_device = (events["device"] == device) & np.isin(events["action"], (ALLOC, FREED))
    rows = np.flatnonzero(of_device)
    address = events["address"][rows]
    order = np.lexsort((rows, address))
    rows, address = rows[order], address[order]
    is_alloc = events["action"][rows] == ALLOC
    same_next = np.r_[address[1:] == address[:-1], False] if len(rows) else np.zeros(0, bool)
    until = np.where(same_next, np.r_[rows[1:], rows[:1]], len(events))
    return Blocks(rows[is_alloc], until[is_alloc])


@dataclass(frozen=True)
class MemoryUse:
    """Who allocated what, one value a name; bytes.

    Attributes:
        names: regions by path, operators by name, or modules by path.
        self_increase, total_increase: allocated less released (the seeds' "Size Increase"), by itself; with what is below it.
        self_allocated, total_allocated: allocated, releases left aside ("Allocation Size").
        allocations: how many, by itself.
        at_peak: allocated within the session and held when most was in use, by itself.
    """

    names: list[str]
    self_increase: Int64
    total_increase: Int64
    self_allocated: Int64
    total_allocated: Int64
    allocations: Int64
    at_peak: Int64

    def __len__(self) -> int:
        return len(self.names)


def memory_by_region(result: Result, device: int) -> MemoryUse:
    """By path of the innermost region; what is below: the regions within."""

    def names(code: int, known: int) -> tuple[str, ...]:
        text = result.allocator_events.strings[code]
        return _outer(text, "/", "\\") if text else (NO_REGION if known else UNATTRIBUTED,)

    events = result.allocator_events
    seen = (events["thread"] != 0) | (events["operator_known"] == KNOWN)
    return _use(result, device, events.codes("region"), seen.astype(np.int64), names)


def memory_by_operator(result: Result, device: int) -> MemoryUse:
    """By name of the innermost operator; what is below: the operators that it calls."""

    def names(code: int, known: int) -> tuple[str, ...]:
        if known != KNOWN:
            return (NO_OPERATOR if known == OUTSIDE else UNATTRIBUTED,)
        names = _components(result.allocator_events.strings[code])
        return tuple(name for name in names if name != _OF_A_MODE) or (NO_OPERATOR,)

    events = result.allocator_events
    return _use(result, device, events.codes("operator"), events["operator_known"].astype(np.int64), names)


def memory_by_module(result: Result, device: int) -> MemoryUse:
    """By path of the module; what is below: the modules within."""

    def names(code: int, known: int) -> tuple[str, ...]:
        text = result.allocator_events.strings[code]
        if known != KNOWN:
            return (NO_OPERATOR if known == OUTSIDE else UNATTRIBUTED,)
        return _outer(text, ".", "") if text else (NO_MODULE,)

    events = result.allocator_events
    return _use(result, device, events.codes("module"), events["operator_known"].astype(np.int64), names)


def _outer(path: str, separator: str, escape: str) -> tuple[str, ...]:
    """The path and those of what is around it, outermost first."""
    ends = [i for i, c in enumerate(path) if c == separator and not (escape and path[i - 1] == escape)]
    return (*(path[:i] for i in ends), path)


def _components(path: str) -> list[str]:
    """Names of a path joined by ``/``."""
    whole = _outer(path, "/", "\\")
    own = [whole[0], *(b[len(a) + 1 :] for a, b in pairwise(whole))]
    return [name.replace("\\/", "/").replace("\\\\", "\\") for name in own]


def _use(
    result: Result, device: int, codes: Array, known: Int64, names_of: Callable[[int, int], Sequence[str]]
) -> MemoryUse:
    events = result.allocator_events
    mine = (events["device"] == device) & np.isin(events["action"], (ALLOC, FREED))
    rows = np.flatnonzero(mine)
    keys, of = np.unique(np.stack([codes[rows].astype(np.int64), known[rows]]), axis=1, return_inverse=True)
    of = of.reshape(-1)
    size, is_alloc = events["bytes"][rows].astype(np.int64), events["action"][rows] == ALLOC
    held = np.isin(rows, _held_at_peak(result, device))
    sums = [_sums(of, values, keys.shape[1]) for values in (
        np.where(is_alloc, size, -size), np.where(is_alloc, size, 0), is_alloc.astype(np.int64), np.where(held, size, 0)
    )]  # fmt: skip
    number: dict[str, int] = {}
    totals: list[tuple[int, int]] = []  # (name, key) pairs that count
    own = []
    for key, (code, is_known) in enumerate(keys.T.tolist()):
        names = names_of(code, is_known)
        own.append(number.setdefault(names[-1], len(number)))
        totals += [(number.setdefault(name, len(number)), key) for name in dict.fromkeys(names)]
    at = np.array(own, np.int64)
    by_self = [_sums(at, values, len(number)) for values in sums]
    pairs = np.array(totals, np.int64).reshape(-1, 2)
    by_total = [_sums(pairs[:, 0], values[pairs[:, 1]], len(number)) for values in sums[:2]]
    return MemoryUse(list(number), by_self[0], by_total[0], by_self[1], by_total[1], by_self[2], by_self[3])


def _sums(of: Int64, values: Int64, length: int) -> Int64:
    out = np.zeros(length, np.int64)
    np.add.at(out, of, values)
    return out


def _held_at_peak(result: Result, device: int) -> Int64:
    timeline = memory_timeline(result, device)
    _, at = timeline.peak()
    if at < 0:
        return np.zeros(0, np.int64)
    return blocks_of(result.allocator_events, device).held_after(int(timeline.rows[at]))


@dataclass(frozen=True)
class Fragmentation:
    """What the allocator had from CUDA when the session stopped, and what of it was free; bytes.

    Attributes:
        reserved, allocated, requested: from CUDA; of it in blocks of tensors; of that asked for.
        free, largest_free: not used by any tensor; the largest piece of it.
    """

    reserved: int
    allocated: int
    requested: int
    free: int
    largest_free: int

    @property
    def external(self) -> float:
        """Part (0..1) of what is free that is not in the largest piece."""
        return 1 - self.largest_free / self.free if self.free else 0.0

    @property
    def internal(self) -> float:
        """Part (0..1) of the allocated blocks that nobody asked for."""
        return 1 - self.requested / self.allocated if self.allocated else 0.0


def fragmentation(result: Result, device: int) -> Fragmentation:
    """Of the blocks when the session stopped."""
    blocks = result.allocator_blocks.where(result.allocator_blocks["device"] == device)
    size, state = blocks["bytes"].astype(np.int64), blocks["state"]
    _, first = np.unique(blocks["segment"], return_index=True)
    free = size[state == _FREE]
    return Fragmentation(
        int(blocks["segment_bytes"][first].sum()),
        int(size[state == _ALLOCATED].sum()),
        int(blocks["requested"][state == _ALLOCATED].sum()),
        int(free.sum()),
        int(free.max(initial=0)),
    )


@dataclass(frozen=True)
class OutOfMemory:
    """An allocation that found no memory.

    Attributes:
        time: ns, run clock.
        row: in ``allocator_events``.
        asked, device_free: bytes wanted; bytes that CUDA still had.
        allocated, reserved: bytes in tensors, and in the allocator, at that time.
        held: row of ``alloc`` of each allocation of the session that was held.
        earlier: bytes held from before the session (or of which the history has no allocation).
    """

    time: int
    row: int
    asked: int
    device_free: int
    allocated: int
    reserved: int
    held: Int64
    earlier: int


def out_of_memory(result: Result, device: int) -> list[OutOfMemory]:
    """Every time the allocator gave up, in order."""
    events = result.allocator_events
    timeline, blocks = memory_timeline(result, device), blocks_of(events, device)
    out = []
    for i in np.flatnonzero(events["action"][timeline.rows] == OOM).tolist():
        row, allocated = int(timeline.rows[i]), int(timeline.allocated[i])
        held = blocks.held_after(row)
        earlier = allocated - int(events["bytes"][held].sum())
        of_row = events.row(row)
        out.append(OutOfMemory(of_row["timestamp"], row, of_row["bytes"], of_row["device_free"], allocated,
                               int(timeline.reserved[i]), held, earlier))  # fmt: skip
    return out
