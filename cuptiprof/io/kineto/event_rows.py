"""Events of one kind with their times, as columns of a table in the making. What makes no sense is left out and counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cuptiprof.io.kineto.skipped import Skipped
from cuptiprof.io.kineto.trace_columns import COUNTED, Int64, Mask, TraceColumns
from cuptiprof.io.kineto.trace_values import is_within, to_ns

LONGEST = 2**62
"""ns; what is beyond is no time"""
_NO_TIME = -(2**63) + 1
_U32 = 0xFFFFFFFF


def _time(value: Any) -> int:
    try:
        return to_ns(value)
    except (ValueError, OverflowError, ArithmeticError):
        return _NO_TIME


class EventRows:
    """Events of the phase "X" with a name and times, shape (rows,); `is_slice` False: of other phases, which have no duration.

    Attributes:
        event: number in the file.
        start, end: ns.
    """

    def __init__(self, columns: TraceColumns, skipped: Skipped, events: Int64, *, is_slice: bool = True) -> None:
        self.columns, self._skipped = columns, skipped
        self.event, self._good = events, np.ones(len(events), bool)
        self._read = events
        self.start = columns.numbers("ts", events, _NO_TIME, _time)
        duration = columns.numbers("dur", events, _NO_TIME, _time) if is_slice else np.zeros(len(events), np.int64)
        self._refuse((self.start == _NO_TIME) | (duration == _NO_TIME), "it has no time")
        self._refuse(duration < 0, "its duration is negative")
        far = (self.start <= -LONGEST) | (self.start >= LONGEST) | (duration >= LONGEST)
        self._refuse(far, "its time is out of range")
        duration[~self._good], self.start[~self._good] = 0, 0
        self.end = self.start + duration
        self._refuse(self.end >= LONGEST, "its time is out of range")
        self._refuse(columns.tokens("name", events) < 0 if is_slice else np.zeros(len(events), bool), "it has no name")
        self._refuse(self._has_wrong_args(), "args is not an object")
        self._drop_refused()

    def __len__(self) -> int:
        return len(self.event)

    def look_at(self, events: Int64) -> None:
        """Takes fields from other events from here on, one for each row."""
        self._read = events

    def number(self, field: str, default: int = 0) -> Int64:
        """A field, whatever its size; `default` where it is missing, 0 where it is no number."""
        return self.columns.numbers(field, self._read, default)

    def low32(self, field: str) -> Int64:
        """A field modulo 2**32: IDs of threads and the like, of which some writers make negative ones."""
        return self.number(field) & _U32

    def count(self, field: str, bits: int = 32, default: int = 0, instead: str = "") -> Int64:
        """A field that must fit so many bits, or the event is left out; the field `instead` where that one is missing."""
        values = self.number(field, default)
        if instead:
            values = np.where(self.columns.has(field, self._read), values, self.number(instead, default))
        return self.limited(values, bits, field)

    def limited(self, values: Int64, bits: int, what: str) -> Int64:
        """The values, 0 where they do not fit so many bits: those events are left out."""
        fits = is_within(values, bits)
        if fits.all():
            return values
        worst = int(values[~fits][0])
        self._refuse(~fits, f"{what} is {worst}, which does not fit {bits} bits")
        return np.where(fits, values, 0)

    def token(self, field: str) -> Int64:
        """The token of a text field; -1: missing."""
        return self.columns.tokens(field, self._read)

    def text(self, field: str) -> Int64:
        """A text field as indices into the strings of the run."""
        return self.columns.codes(self.token(field))

    def of_text(self, field: str, make: Callable[[Any], Any], dtype: Any = np.int64) -> Any:
        """``make(value)`` of a text field, called once for each different one; of None where it is missing."""
        return self.columns.mapped(self.token(field), lambda token: make(self.columns.value(token)), dtype)

    def refuse(self, mask: Mask, why: str) -> None:
        """Leaves those events out."""
        self._refuse(mask, why)

    def kept(self, made: Mapping[str, Any]) -> dict[str, Any]:
        """Columns without the events that are left out; the rows are those from here on."""
        good = self._good
        if good.all():
            return dict(made)
        self._drop_refused()
        return {name: np.asarray(values)[good] for name, values in made.items()}

    def _refuse(self, mask: Mask, why: str) -> None:
        mask = mask & self._good
        if mask.any():
            self._skipped.add(self.columns.places[self.event[mask]], why)
            self._good &= ~mask

    def _drop_refused(self) -> None:
        if not self._good.all():
            for name in ("event", "start", "end"):
                setattr(self, name, getattr(self, name)[self._good])
        self._good = np.ones(len(self.event), bool)
        self._read = self.event

    def _has_wrong_args(self) -> Mask:
        """args that are something else than an object; nothing at all is as good as an empty one."""
        token = self.token("args")
        if (token < 0).all() or self.columns.is_category(self.event, lambda name: name == COUNTED).all():
            return np.zeros(len(self.event), bool)
        return self.of_text("args", lambda value: bool(value) and not isinstance(value, dict), bool)  # type: ignore[no-any-return]
