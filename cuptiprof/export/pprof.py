"""A pprof profile (``profile.proto`` of github.com/google/pprof): GPU time, launches and counters by what launched the work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.trees.flame import NO_STACK, STACK_WORDS, StackBy, WorkStacks, work_stacks
from cuptiprof.analysis.trees.grouped_work import WorkSums, grouped_work, work_tables
from cuptiprof.analysis.work.gpu_work import origin_ns
from cuptiprof.data.python_stacks import Frame
from cuptiprof.data.result import Progress, Result
from cuptiprof.export.output_stream import opened_output
from cuptiprof.export.protobuf import Field, message, packed, varint
from cuptiprof.version import __version__

_SAMPLE_TYPE, _SAMPLE, _LOCATION, _FUNCTION, _STRING, _TIME, _DURATION, _COMMENT, _DEFAULT_TYPE = (
    1,
    2,
    4,
    5,
    6,
    9,
    10,
    13,
    14,
)
_AT_ONCE = 4096


def write_pprof(result: Result, path: Path, compress: bool, progress: Progress | None, by: StackBy) -> None:
    """A sample for each stack, region, GPU, stream and kernel. The kernel is the innermost location; region, device, stream and kernel
    are labels, too. Values are launches, ns, and those counters that can be added up, as whole numbers."""
    tables = work_tables(result)
    stacks = work_stacks(result, tables, by)
    columns = {name: [table.codes(name) for table in tables] for name in ("region", "device", "stream")}
    groups = grouped_work(result, tables, {"stack": stacks.columns, **columns})
    texts = _Texts()
    types = [("launches", "count"), ("gpu_time", "nanoseconds")]
    values = [groups.launches, groups.ns]
    for metric in result.counters:
        info = result.counters.info(metric)
        if info.adds_up:
            types.append((metric, info.unit or "count"))
            values.append(np.rint(np.nan_to_num(groups.counted(result, metric))).astype(np.int64))
    places = _Locations(texts)
    regions = _region_texts(result, groups, texts)
    with opened_output(path, compress) as out:
        for kind, unit in types:
            out.write(message((_SAMPLE_TYPE, message((1, texts.number(kind)), (2, texts.number(unit))))))
        pieces = _samples(groups, stacks, np.stack(values, axis=1), (texts, places, regions))
        for first, piece in pieces:
            out.write(piece)
            if progress is not None:
                progress(min(first, len(groups)), max(len(groups), 1))
        for data in places.data:
            out.write(data)
        out.write(message(*_header(result, by, texts)))
        for text in texts.numbers:
            out.write(message((_STRING, text)))
    if progress is not None:
        progress(1, 1)


def _samples(
    groups: WorkSums, stacks: WorkStacks, values: Int64, named: tuple[_Texts, _Locations, dict[int, int]]
) -> Iterable[tuple[int, bytes]]:
    """Some thousand samples at a time, and how many there were by then."""
    texts, places, regions = named
    region_key, device_key, stream_key, kernel_key = map(texts.number, ("region", "device", "stream", "kernel"))
    work = [(places.number(Frame("", name, 0, 0, False)), texts.number(name)) for name in groups.names]
    known: dict[int, bytes] = {}
    keys = [groups.keys[name].tolist() for name in ("stack", "work", "region", "device", "stream")]
    rows = zip(*keys, values.tolist(), strict=True)
    piece = bytearray()
    for row, (stack, name, region, device, stream, value) in enumerate(rows, 1):
        outer = known.get(stack)
        if outer is None:
            frames = stacks.frames(stack) or (Frame("", NO_STACK[stacks.by], 0, 0, False),)
            outer = known[stack] = packed(places.number(frame) for frame in reversed(frames))
        location, kernel = work[name]
        labels = [
            (3, message((1, device_key), (3, device))),
            (3, message((1, stream_key), (3, stream))),
            (3, message((1, kernel_key), (2, kernel))),
        ]
        if region:
            labels.append((3, message((1, region_key), (2, regions[region]))))
        piece += message((_SAMPLE, message((1, varint(location) + outer), (2, packed(value)), *labels)))
        if row % _AT_ONCE == 0:
            yield row, bytes(piece)
            piece.clear()
    yield len(groups), bytes(piece)


def _region_texts(result: Result, groups: WorkSums, texts: _Texts) -> dict[int, int]:
    strings = result.kernels.strings
    return {code: texts.number(strings[code]) for code in np.unique(groups.keys["region"]).tolist() if code}


def _header(result: Result, by: StackBy, texts: _Texts) -> Sequence[Field]:
    comments = [f"cuptiprof {__version__}: GPU time by {STACK_WORDS[by]}", result.losses.line()]
    if result.simulated:
        comments.insert(0, "SIMULATED: not measured on a GPU")
    fields: list[Field] = [(_COMMENT, texts.number(comment)) for comment in comments if comment]
    fields.append((_DEFAULT_TYPE, texts.number("gpu_time")))
    ends = [int(table["end"].max()) for table in work_tables(result) if len(table)]
    begin = origin_ns(result)
    if result.metadata.get("clock_pairs"):
        fields.append((_TIME, result.clock_to_unix(begin)))
    fields.append((_DURATION, max(max(ends, default=begin) - begin, 0)))
    return fields


class _Texts:
    """The table of strings; the first is the empty one."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {"": 0}

    def number(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))


class _Locations:
    """Functions and the lines in them, each once, numbered from 1.

    Attributes:
        data: their messages.
    """

    def __init__(self, texts: _Texts) -> None:
        self._texts = texts
        self._functions: dict[tuple[str, str, int], int] = {}
        self._known: dict[tuple[int, int], int] = {}
        self.data: list[bytes] = []

    def number(self, frame: Frame) -> int:
        key = (frame.function, frame.file, frame.first_line)
        function = self._functions.get(key)
        if function is None:
            function = self._functions[key] = len(self._functions) + 1
            name, file = self._texts.number(frame.function), self._texts.number(frame.file)
            # No system_name: pprof takes names that equal it for mangled ones, and cuts them.
            fields = (1, function), (2, name), (4, file), (5, frame.first_line)
            self.data.append(message((_FUNCTION, message(*fields))))
        place = self._known.get((function, frame.line))
        if place is None:
            place = self._known[function, frame.line] = len(self._known) + 1
            line = message((1, function), (2, frame.line))
            self.data.append(message((_LOCATION, message((1, place), (4, line)))))
        return place
