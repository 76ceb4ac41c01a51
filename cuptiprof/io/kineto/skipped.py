"""What of a trace is not in the result: events that make no sense, and categories that there is no place for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cuptiprof.data.codes import distinct
from cuptiprof.data.tables import Array

_SHOWN, _NAMED = 6, 1000
"""categories in a report, and in the metadata: a file may have any number"""
_LONGEST_NAME = 80
_OTHERS = "(other categories)"


class Skipped:
    """Events that were left out.

    Attributes:
        kinds: how many of each category (or kind of event) that nothing is made of.
    """

    def __init__(self) -> None:
        self.kinds: dict[str, int] = {}
        self._events: list[Array] = []
        self._strangers = 0
        self._first: tuple[int, str] | None = None

    @property
    def count(self) -> int:
        """How many events were left out, each counted once for however many tables."""
        return self._strangers + (len(distinct(np.concatenate(self._events))) if self._events else 0)

    def add(self, events: Array, why: str) -> None:
        """Events by their place in the file, ascending, all for one reason."""
        if len(events):
            self._events.append(events)
            if self._first is None or int(events[0]) < self._first[0]:
                self._first = int(events[0]), why

    def strangers(self, count: int) -> None:
        """Elements among the events that are none, and damaged things beside them."""
        self._strangers += count

    def not_kept(self, kind: str, count: int) -> None:
        """So many of a kind that has no place in the result."""
        if count:
            kind = kind[:_LONGEST_NAME]
            kind = kind if kind in self.kinds or len(self.kinds) < _NAMED else _OTHERS
            self.kinds[kind] = self.kinds.get(kind, 0) + count

    def metadata(self) -> Mapping[str, Any]:
        """Keys "not_kept" (by category), "skipped_first" and "note", each where there is something to say."""
        out: dict[str, Any] = {}
        notes = []
        if self._first is not None:
            event, why = self._first
            out["skipped_first"] = {"event": event, "reason": why}
            notes.append(
                f"{self.count:,} events of the trace make no sense and are left out, first event {event} ({why})"
            )
        if self.kinds:
            out["not_kept"] = dict(sorted(self.kinds.items()))
            most = sorted(self.kinds.items(), key=lambda item: (-item[1], item[0]))
            named = [f"{count:,} {kind}" for kind, count in most[:_SHOWN]]
            more = [f"{len(most) - _SHOWN} other categories"] if len(most) > _SHOWN else []
            notes.append(f"not kept of the trace: {', '.join(named + more)}")
        return {**out, **({"note": "; ".join(notes)} if notes else {})}
