"""A model of PyTorch's caching allocator, as c10/cuda/CUDACachingAllocator.cpp has it: sizes are rounded to 512 bytes, blocks are cut from
segments of 2 MiB, 20 MiB or a multiple of 2 MiB, the best fit is taken, what is free beside each other is joined, and segments are kept
until ``empty_cache()`` or until there is no room.

One device, one stream, no private pools. It keeps torch's history and counts what torch counts.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

_ROUND, _SMALL, _SMALL_SEGMENT, _LARGE_SEGMENT, _LARGE, _ROUND_LARGE = (
    512,
    1 << 20,
    2 << 20,
    20 << 20,
    10 << 20,
    2 << 20,
)
TOTAL = 80 << 30
"""bytes of the simulated device"""
_FIRST_ADDRESS = 0x7F00_0000_0000
Frames = list[dict[str, Any]]


class SimulatedOutOfMemory(Exception):
    """There is no room: the text is torch's."""


class _Block:
    __slots__ = ("address", "frames", "is_free", "requested", "segment", "size")

    def __init__(self, address: int, size: int, segment: _Segment) -> None:
        self.address, self.size, self.segment = address, size, segment
        self.is_free, self.requested, self.frames = True, 0, []  # type: ignore[var-annotated]


class _Segment:
    """Memory from cudaMalloc, and the blocks in it by address."""

    def __init__(self, address: int, size: int, is_small: bool, frames: Frames) -> None:
        self.address, self.size, self.is_small, self.frames = address, size, is_small, frames
        self.blocks = [_Block(address, size, self)]


class _Stat:
    """One of torch's: the bytes or the number of something."""

    def __init__(self) -> None:
        self.current = self.peak = self.allocated = self.freed = 0

    def change(self, by: int) -> None:
        self.current += by
        self.peak = max(self.peak, self.current)
        if by > 0:
            self.allocated += by
        else:
            self.freed -= by


_STATS = ("allocation", "segment", "allocated_bytes", "reserved_bytes", "active_bytes", "requested_bytes")


class CachingAllocator:
    """Any thread may call; releases may come from within anything, as the garbage collector does."""

    def __init__(self, read_frames: Callable[[], Frames]) -> None:
        self._lock = threading.Lock()
        self._read_frames = read_frames
        self._segments: list[_Segment] = []
        self._next_address = _FIRST_ADDRESS
        self._released: deque[_Block] = deque()
        self._trace: deque[dict[str, Any]] = deque(maxlen=1)
        self._settings: tuple[str | None, str | None] = (None, None)  # enabled, context
        self._metadata = threading.local()
        self.stats = {name: _Stat() for name in _STATS}
        self.limit = TOTAL

    def allocate(self, size: int) -> _Block:
        """A block for so many bytes.

        Raises:
            SimulatedOutOfMemory: there is no room.
        """
        rounded = max(-(-size // _ROUND) * _ROUND, _ROUND)
        frames = self._read_frames() if self._settings[1] else []
        with self._lock:
            self._drain()
            block = self._best_fit(rounded) or self._grow(rounded, size, frames)
            self._split(block, rounded)
            block.is_free, block.requested, block.frames = False, size, frames
            self._count(block, 1)
            self._record("alloc", block.address, size, frames)
        self.release_pending()
        return block

    def release(self, block: _Block) -> None:
        """It is used no more. If somebody is inside, that one does it."""
        self._released.append(block)
        self.release_pending()

    def release_pending(self) -> None:
        """What was released while somebody was inside."""
        while self._released and self._lock.acquire(blocking=False):
            try:
                self._drain()
            finally:
                self._lock.release()

    def _drain(self) -> None:
        while self._released:
            block = self._released.popleft()
            for action in ("free_requested", "free_completed"):
                self._record(action, block.address, block.requested, [])
            self._count(block, -1)
            block.is_free, block.frames = True, []
            self._join(block)

    def _count(self, block: _Block, sign: int) -> None:
        self.stats["allocation"].change(sign)
        for name in ("allocated_bytes", "active_bytes"):
            self.stats[name].change(sign * block.size)
        self.stats["requested_bytes"].change(sign * block.requested)

    def _best_fit(self, size: int) -> _Block | None:
        fits = [
            b
            for s in self._segments
            if s.is_small == (size <= _SMALL)
            for b in s.blocks
            if b.is_free and b.size >= size
        ]
        return min(fits, key=lambda b: (b.size, b.address), default=None)

    def _grow(self, size: int, asked: int, frames: Frames) -> _Block:
        small = size <= _SMALL
        whole = (
            _SMALL_SEGMENT if small else _LARGE_SEGMENT if size < _LARGE else -(-size // _ROUND_LARGE) * _ROUND_LARGE
        )
        if self.stats["reserved_bytes"].current + whole > self.limit:
            self._free_segments()
        if self.stats["reserved_bytes"].current + whole > self.limit:
            free = self.limit - self.stats["reserved_bytes"].current
            self._record("oom", 0, asked, frames, device_free=free)
            raise SimulatedOutOfMemory(
                f"CUDA out of memory. Tried to allocate {asked / 2**20:.2f} MiB. GPU 0 has a total capacity of "
                f"{TOTAL / 2**30:.2f} GiB of which {free / 2**20:.2f} MiB is free. (simulated)"
            )
        segment = _Segment(self._next_address, whole, small, frames)
        self._next_address += -(-whole // _ROUND_LARGE) * _ROUND_LARGE
        self._segments.append(segment)
        self.stats["segment"].change(1)
        self.stats["reserved_bytes"].change(whole)
        self._record("segment_alloc", segment.address, whole, frames)
        return segment.blocks[0]

    def _split(self, block: _Block, size: int) -> None:
        rest = block.size - size
        if rest >= _ROUND if block.segment.is_small else rest > _SMALL:
            after = _Block(block.address + size, rest, block.segment)
            block.size = size
            blocks = block.segment.blocks
            blocks.insert(blocks.index(block) + 1, after)

    def _join(self, block: _Block) -> None:
        blocks = block.segment.blocks
        at = blocks.index(block)
        if at + 1 < len(blocks) and blocks[at + 1].is_free:
            block.size += blocks.pop(at + 1).size
        if at and blocks[at - 1].is_free:
            blocks[at - 1].size += blocks.pop(at).size

    def empty_cache(self) -> None:
        """Give back the segments in which nothing is used."""
        with self._lock:
            self._drain()
            self._free_segments()

    def _free_segments(self) -> None:
        for segment in [s for s in self._segments if all(b.is_free for b in s.blocks)]:
            self._segments.remove(segment)
            self.stats["segment"].change(-1)
            self.stats["reserved_bytes"].change(-segment.size)
            self._record("segment_free", segment.address, segment.size, [])

    def record_history(self, enabled: str | None, context: str | None, max_entries: int) -> None:
        """As torch does: switched off, the history is forgotten."""
        with self._lock:
            self._settings = (enabled, context)
            old = self._trace if enabled else ()
            self._trace = deque(old, maxlen=min(max_entries, 1 << 40) if enabled == "all" else 1)

    @property
    def is_recording(self) -> bool:
        return self._settings[0] is not None

    @property
    def metadata(self) -> str:
        """What the calling thread's allocations are marked with."""
        return getattr(self._metadata, "text", "")

    @metadata.setter
    def metadata(self, text: str) -> None:
        self._metadata.text = text

    def _record(self, action: str, address: int, size: int, frames: Frames, *, device_free: int = 0) -> None:
        if not self.is_recording:
            return
        place = {"device_free": device_free} if action == "oom" else {"addr": address}
        entry = {"action": action, **place, "size": size, "stream": 0, "time_us": time.time_ns() // 1000}
        entry |= {"compile_context": "N/A", "user_metadata": self.metadata, "pool_id": (0, 0)}
        self._trace.append(entry | {"frames": frames} if frames else entry)

    def snapshot(self) -> dict[str, Any]:
        """The dictionary of ``torch.cuda.memory._snapshot()``."""
        with self._lock:
            self._drain()
            self._record("snapshot", 0, self.stats["active_bytes"].current, [])
            segments = [_described(s) for s in sorted(self._segments, key=lambda s: s.address)]
            trace = list(self._trace) if self._settings[0] == "all" else []
        return {
            "segments": segments,
            "device_traces": [trace],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "expandable_segments": False},
            "external_annotations": [],
        }


def _described(segment: _Segment) -> dict[str, Any]:
    used = [b for b in segment.blocks if not b.is_free]
    allocated = sum(b.size for b in used)
    return {
        "device": 0,
        "address": segment.address,
        "total_size": segment.size,
        "allocated_size": allocated,
        "active_size": allocated,
        "requested_size": sum(b.requested for b in used),
        "stream": 0,
        "segment_type": "small" if segment.is_small else "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": segment.frames,
        "blocks": [
            {
                "address": b.address,
                "size": b.size,
                "requested_size": b.requested,
                "state": "inactive" if b.is_free else "active_allocated",
                "frames": b.frames,
            }
            for b in segment.blocks
        ],
    }
