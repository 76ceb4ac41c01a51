"""Fields of a trace's events as columns, by the native reader: text comes in pieces, and no event becomes an object."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from cuptiprof import _core
from cuptiprof.data.codes import distinct
from cuptiprof.data.tables import Array, Strings
from cuptiprof.io.kineto.trace_values import clamped, json_value, number

Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

COUNTED = "cuda_profiler_range"
"""Category of which all arguments are kept: their names are those of metrics."""
READ = "system"
"""The same for readings of the system: counters."""

_FEW = 8
"""one row in so many: then it is faster to look for each"""
_TEXT, _INTEGER, _DECIMAL = "text", "integer", "decimal"
_FIELDS = [
    *((name, _TEXT) for name in ("ph", "cat", "name", "args")),
    *((name, _DECIMAL) for name in ("ts", "dur")),
    *((name, _INTEGER) for name in ("pid", "tid", "id")),
]
_ARGS = [
    *((name, _INTEGER) for name in (
        "correlation", "device", "stream", "context", "External id", "Sequence number", "Fwd thread id", "registers per thread",
        "shared memory", "queued", "graph id", "graph node id", "cbid", "cid", "bytes", "toDevice", "fromDevice",
        "Group size", "In msg nelems", "Out msg nelems", "Src Rank", "Dst Rank", "Seq",
        "wait_on_stream", "wait_on_cuda_event_record_corr_id", "wait_on_cuda_event_id",
        "Addr", "Bytes", "Device Type", "Device Id", "size",
    )),
    *((name, _TEXT) for name in (
        "grid", "block", "memory bandwidth (GB/s)", "cuda_sync_kind", "Input Dims", "Input type", "Call stack", "direction",
        "Collective name", "dtype", "Process Group Name", "Process Group ID", "Process Group Description", "Process Group Ranks",
        "Is asynchronized op",
    )),
]  # fmt: skip

_LEFT_OUT = [*(("cat", name) for name in ("ac2g", "async_gpu", "async_cpu_to_gpu")), ("ph", "M")]
"""Arrows from calls to their work, which have the same correlation ID, and names of processes and threads."""


def new_scanner() -> _core.EventScanner:
    """A native reader that keeps what an import needs."""
    return _core.EventScanner(_FIELDS, _ARGS, [COUNTED, READ], _LEFT_OUT)


class TraceColumns:
    """What the events of a file say, by event number from 0.

    Fields of ``args`` have names of their own: none is also a field of an event.

    Attributes:
        count: how many events there are.
        places: of each how many come before it in the file, those that the reader left out included.
    """

    def __init__(self, scanner: _core.EventScanner, strings: Strings) -> None:
        self.count = scanner.events
        self.places = scanner.take_places()
        # Tokens as int32, which has a number for "none": there are no 2**31 different texts.
        self._columns = {
            name: (text_events, tokens.view(np.int32), events, numbers)
            for name, text_events, tokens, events, numbers in scanner.take_columns()
        }
        self._tokens = scanner.values()
        self._codes = np.full(len(self._tokens) + 1, -1, np.int64)
        self._codes[-1] = 0
        self.categories: list[str] = []
        self._strings = strings
        self.categories, self._category = self._texts("cat", str.lower)
        self._number_of = {name: i for i, name in enumerate(self.categories)}
        self._phases, self._phase = self._texts("ph", str)

    def tokens_of(self, field: str) -> tuple[Array, Array]:
        """Events that have a text field, ascending, and the number of its token."""
        events, tokens, _, _ = self._columns[field]
        return events, tokens

    def value(self, token: int) -> Any:
        """What a token stands for, as :func:`json_value`; None for -1."""
        return json_value(self._tokens[token]) if token >= 0 else None

    def rows(self, categories: Iterable[str], phase: str = "X") -> Int64:
        """The events of some categories (lower case) and a phase, ascending."""
        wanted = [i for i in map(self._number_of.get, categories) if i is not None]
        if not wanted or phase not in self._phases:
            return np.zeros(0, np.int64)
        chosen = self._category == wanted[0]
        for i in wanted[1:]:
            chosen |= self._category == i
        return np.flatnonzero(chosen & (self._phase == self._phases.index(phase)))

    def counts(self) -> dict[str, int]:
        """How many events each category has, lower case; "" are those without."""
        found = np.bincount(self._category, minlength=len(self.categories))
        return dict(zip(self.categories, found.tolist(), strict=True))

    def is_category(self, rows: Int64, wanted: Callable[[str], bool]) -> Mask:
        """Whether the category of each is a wanted one."""
        return self.mapped(self._category[rows], lambda i: wanted(self.categories[i]), bool)

    def has(self, field: str, rows: Int64) -> Mask:
        """Which events have a field at all."""
        text_events, _, number_events, _ = self._columns[field]
        present = self._picked(number_events, np.ones(len(number_events), bool), rows, False)
        if len(text_events):
            present |= self._picked(text_events, np.ones(len(text_events), bool), rows, False)
        return present

    def numbers(self, field: str, rows: Int64, default: int = 0, convert: Callable[[Any], int] = number) -> Int64:
        """A field as int64; `default` where an event lacks it. What is not written as a number goes through `convert`."""
        text_events, tokens, events, values = self._columns[field]
        out = self._picked(events, values, rows, default)
        if len(text_events):
            token = self._picked(text_events, tokens, rows, -1)
            written = np.flatnonzero(token >= 0)
            out[written] = self.mapped(token[written], lambda i: clamped(convert(self.value(i))), np.int64)
        return out

    def tokens(self, field: str, rows: Int64) -> Int64:
        """Number of the token of a text field; -1: an event lacks it."""
        events, tokens = self.tokens_of(field)
        return self._picked(events, tokens, rows, -1).astype(np.int64)

    def mapped(self, keys: Array, make: Callable[[int], Any], dtype: Any) -> Array:
        """``make(key)`` of each key (a token, or the number of a category; -1: none), made once for each different one."""
        if not len(keys):
            return np.zeros(0, dtype)
        # By marks, as numbers of tokens are dense; the last mark is that of -1.
        is_used = np.zeros(max(len(self._tokens), len(self.categories)) + 1, bool)
        is_used[keys] = True
        used = np.flatnonzero(is_used[:-1]).tolist() + [-1] * int(is_used[-1])
        made = np.array([make(key) for key in used], dtype)
        table = np.empty((len(is_used), *made.shape[1:]), dtype)
        table[used] = made
        return table[keys]

    def codes(self, tokens: Int64) -> Int64:
        """Tokens as indices into the strings of the run, values that are no text as Python writes them; -1 is the empty string."""
        codes = self._codes[tokens]  # the last one is that of -1
        for token in distinct(tokens[codes < 0]).tolist():
            self._codes[token] = self._strings.code(str(self.value(token)))
        return self._codes[tokens]

    def _picked(self, events: Array, values: Array, rows: Int64, fill: Any) -> Array:
        """Values of those of the rows that are among the events; `fill` for others. Both are ascending."""
        if len(events) == self.count:
            return values[rows]
        if len(rows) * _FEW > self.count:
            of_event = np.full(self.count, fill, values.dtype)
            of_event[events] = values
            return of_event[rows]
        if not len(events) or not len(rows):
            return np.full(len(rows), fill, values.dtype)
        at = np.minimum(np.searchsorted(events, rows.astype(events.dtype)), len(events) - 1)
        return np.where(events[at] == rows, values[at], fill)

    def _texts(self, field: str, change: Callable[[str], str]) -> tuple[list[str], Array]:
        """Different texts of a field, changed, and which of them each event has; the last one, "", is that of events without."""
        events, tokens = self.tokens_of(field)
        names: dict[str, int] = {}
        which = self.mapped(tokens, lambda i: names.setdefault(change(str(self.value(i))), len(names)), np.int64)
        # A byte each, as a rule: an event can be as short as "{},".
        out = np.full(self.count, len(names), np.uint8 if len(names) < 256 else np.uint32)
        out[events] = which
        return [*names, ""], out
