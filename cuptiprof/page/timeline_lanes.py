"""The slices of a run on lanes, as the timeline of the page draws them: ``assets/timeline_slices.js`` is the other side.

A track is a stream of a GPU, what waited for one and which regions it worked for, or what one thread of the host did of one kind; where its slices overlap or lie in each other it has several
lanes, in each of which they follow each other. Slices are numbered lane after lane, in each by time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.arrays.track_rows import serial_rows
from cuptiprof.data.codes import distinct_rows, renumbered
from cuptiprof.data.tables import Array
from cuptiprof.text.short_names import function_name

FIELDS = (
    "region", "operator", "module", "line", "nvtx", "domain", "grid", "block", "registers", "shared_memory", "shapes", "metadata", "stack",
)  # fmt: skip
"""What the page says of a slice beside its name, where it is known."""


@dataclass(frozen=True)
class Track:
    """Where slices are drawn.

    Attributes:
        order: tracks are drawn in this order; those of one group have the same first number.
        group, name: shown.
        kind: "work" of a GPU, whose slices have a cause; what else is said of a GPU; the host.
    """

    order: tuple[int, ...]
    group: str
    name: str
    kind: Literal["work", "gpu", "host"]


@dataclass(frozen=True)
class SliceTexts:
    """A text a slice, by number; no text where the number is negative."""

    codes: Array
    texts: Sequence[str]


class Lanes:
    """Collects slices, kind by kind, and puts them in order.

    Attributes:
        count: slices so far.
    """

    def __init__(self, first: int) -> None:
        self._first = first
        self._tracks: dict[Track, int] = {}
        self._parts: list[tuple[Array, Array, Array, Array]] = []  # track, start, end, face
        self._faces: dict[str, list[str]] = {name: [] for name in ("name", "kind", "label", *FIELDS)}
        self.count = 0

    def track(self, track: Track) -> int:
        return self._tracks.setdefault(track, len(self._tracks))

    def add(self, kind: str, track: Array, times: tuple[Array, Array], name: SliceTexts, **fields: SliceTexts) -> int:
        """Slices of one kind; returns the number of the first, before they are put in order.

        Args:
            track: number of each one's track.
            times: start and end, ns of the run clock.
            fields: of ``FIELDS``.
        """
        before, start, end = self.count, *(np.asarray(time, np.int64) - self._first for time in times)
        distinct, which = distinct_rows(name.codes, *(field.codes for field in fields.values()))
        known = len(self._faces["name"])
        names = [name.texts[int(row[0])] for row in distinct]
        self._faces["name"] += names
        self._faces["kind"] += [kind] * len(names)
        self._faces["label"] += [function_name(text) if kind == "kernel" else text for text in names]
        for field in FIELDS:
            self._faces[field] += [""] * len(names)
        for at, (field, column) in enumerate(fields.items(), 1):
            self._faces[field][known:] = [column.texts[code] if code >= 0 else "" for code in distinct[:, at].tolist()]
        self._parts.append((np.asarray(track, np.int64), start, np.maximum(end, start), which + np.int64(known)))
        self.count += len(start)
        return before

    def drawn(self, most: int) -> DrawnSlices:
        """In order; of more than `most` the longest."""
        track, start, end, face = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        kept = np.arange(len(track))
        shortest = 0
        if len(track) > most:
            duration = end - start
            kept = np.sort(np.argpartition(-duration, most)[:most])
            shortest = int(duration[kept].min())
        order_of_tracks = sorted(self._tracks, key=lambda one: one.order)
        rank = np.zeros(len(self._tracks), np.int64)
        for i, one in enumerate(order_of_tracks):
            rank[self._tracks[one]] = i
        track = rank[track[kept]]
        row = serial_rows(track, start[kept], end[kept])
        order = np.lexsort((end[kept], start[kept], row, track))
        position = np.full(self.count, -1, np.int64)
        position[kept[order]] = np.arange(len(order))
        return DrawnSlices(order_of_tracks, track[order], row[order], start[kept][order], end[kept][order], face[kept][order],
                     position, self._faces, len(position) - len(kept), shortest)  # fmt: skip


@dataclass(frozen=True)
class DrawnSlices:
    """Slices in order.

    Attributes:
        tracks: in order; ``track`` is the index of each slice's.
        row: lane within its track.
        start, end: ns since the first moment of the page.
        face: what is the same of many slices, as an index into the lists of ``faces``.
        position: number of each slice that was added, -1: left out.
        left_out: how many, all of them no longer than ``shortest`` (ns).
    """

    tracks: Sequence[Track]
    track: Int64
    row: Int64
    start: Int64
    end: Int64
    face: Int64
    position: Int64
    faces: Mapping[str, Sequence[str]]
    left_out: int
    shortest: int

    def columns(self) -> dict[str, Array | Sequence[str]]:
        """As the page wants them: gaps and durations lane by lane."""
        lanes, of = distinct_rows(self.track, self.row)
        ends = np.r_[0, self.end[:-1]]
        is_first = np.r_[True, of[1:] != of[:-1]] if len(of) else np.zeros(0, bool)
        used, face = renumbered(self.face)
        per_track = np.bincount(lanes[:, 0], minlength=len(self.tracks)) if len(lanes) else np.zeros(0, np.int64)
        shown = [i for i in range(len(self.tracks)) if i < len(per_track) and per_track[i]]
        return {
            "gap": np.where(is_first, self.start, self.start - ends),
            "duration": self.end - self.start,
            "face": face,
            "lane_count": np.bincount(of) if len(of) else np.zeros(0, np.int64),
            "track_name": [self.tracks[i].name for i in shown],
            "track_group": [self.tracks[i].group for i in shown],
            "track_kind": [self.tracks[i].kind for i in shown],
            "track_lanes": per_track[shown] if shown else np.zeros(0, np.int64),
            **{f"face_{name}": [values[i] for i in used.tolist()] for name, values in self.faces.items()},
        }

    def is_work(self) -> Array:
        """Whether each slice is on a track of a GPU."""
        return np.array([track.kind == "work" for track in self.tracks], bool)[self.track]
