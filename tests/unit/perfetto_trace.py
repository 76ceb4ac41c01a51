"""A Perfetto trace of a result, decoded: protobuf's wire format, field numbers from protos/perfetto/trace."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cuptiprof.data.result import Result

BEGIN, END, COUNTER = 1, 2, 4


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    while at < len(data):
        key = varint()
        number, wire = key >> 3, key & 7
        if wire == 0:
            yield number, varint()
        elif wire == 1:
            yield number, data[at : at + 8]
            at += 8
        else:
            assert wire == 2
            size = varint()
            assert at + size <= len(data)
            yield number, data[at : at + size]
            at += size


def several(data: bytes) -> dict[int, list[Any]]:
    out = defaultdict(list)
    for number, value in fields(data):
        out[number].append(value)
    return out


class Trace:
    """Slices and tracks of a file."""

    def __init__(self, result: Result | None, folder: Path) -> None:
        """Of a result, or of what is in the folder."""
        if result is not None:
            result.export(folder / "t.pftrace", overwrite=True)
        self.names: dict[int, dict[int, str]] = defaultdict(dict)
        self.tracks: dict[int, dict[int, list[Any]]] = {}
        self.slices: list[dict[str, Any]] = []
        self.counters: dict[int, list[tuple[int, float]]] = defaultdict(list)
        open_: dict[int, list[dict[str, Any]]] = defaultdict(list)
        clock: list[bytes] = []
        for number, data in fields((folder / "t.pftrace").read_bytes()):
            assert number == 1
            packet = several(data)
            clock += packet[6]
            if packet[13] and packet[13][0] & 1:
                self.names.clear()
            for interned in packet[12]:
                for table, entry in fields(interned):
                    parts = dict(fields(entry))
                    assert parts[1] not in self.names[table]
                    self.names[table][parts[1]] = parts[2].decode()
            for descriptor in packet[60]:
                track = several(descriptor)
                self.tracks[track[1][0]] = track
            for event in packet[11]:
                self._event(packet[8][0], several(event), open_)
        assert not any(open_.values())
        times = {parts[1]: parts[2] for parts in (dict(fields(c)) for c in several(clock[0])[1])}
        assert times[6] == 0
        self.base = times[1]

    def _event(self, time: int, event: dict[int, list[Any]], open_: dict[int, list[dict[str, Any]]]) -> None:
        (track,), (kind,) = event[11], event[9]
        assert track in self.tracks
        if kind == COUNTER:
            self.counters[track].append((time, struct.unpack("<d", event[44][0])[0]))
        elif kind == BEGIN:
            found = {
                "name": self.names[2][event[10][0]],
                "category": self.names[1][event[3][0]],
                "track": track,
                "start": time,
                "depth": len(open_[track]),
                "args": dict(self._argument(dict(fields(a))) for a in event[4]),
                "flows": [struct.unpack("<Q", f)[0] for f in event[47]],
                "last": [struct.unpack("<Q", f)[0] for f in event[48]],
            }
            assert not open_[track] or open_[track][-1]["start"] <= time
            open_[track].append(found)
            self.slices.append(found)
        else:
            assert kind == END
            open_[track].pop()["end"] = time

    def _argument(self, parts: dict[int, Any]) -> tuple[str, Any]:
        name = self.names[3][parts[1]]
        if 17 in parts:
            return name, self.names[29][parts[17]]
        return name, parts[4] if 4 in parts else struct.unpack("<d", parts[5])[0]

    def track_name(self, number: int) -> str:
        track = self.tracks[number]
        return track[2][0].decode() if track[2] else dict(fields(track[4][0]))[5].decode()

    def of(self, category: str) -> list[dict[str, Any]]:
        return [s for s in self.slices if s["category"] == category]
