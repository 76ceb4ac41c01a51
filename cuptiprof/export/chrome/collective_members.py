"""Collectives in the trace, as torch.profiler tells of them: arguments of the operator ``record_param_comms``."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.counter_values.kernel_counters import match
from cuptiprof.data.codes import renumbered
from cuptiprof.data.element_types import element_size
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table
from cuptiprof.export.chrome.identity import Identity
from cuptiprof.export.chrome.json_text import Events, Mask

RECORD = "record_param_comms"


class CollectiveSlices:
    """Which slices tell of the collectives of a run.

    Attributes:
        of_operators, of_regions: row of ``collectives`` of each operator and region; -1: none.
        alone: rows of which no slice tells.
    """

    def __init__(self, result: Result) -> None:
        self._table = table = result.tables["collectives"]
        operators, regions = result.tables["operators"], result.tables["regions"]
        is_record = _is(operators, "name", RECORD)
        self.of_operators = np.where(is_record, _same_span(operators, table), -1)
        by_instance = match(operators["instance"], table["operator_instance"])
        self.of_operators = np.where(is_record & (self.of_operators < 0), by_instance, self.of_operators)
        self.of_regions = _same_span(regions, table)
        told = np.r_[self.of_operators, self.of_regions]
        self.alone = np.setdiff1d(np.arange(len(table)), told[told >= 0])

    def add_record(self, events: Events, row: Int64) -> None:
        """What torch says in a record, for the events that have a row of ``collectives`` (else -1)."""
        table = self._table
        if not len(table):
            return
        there, at = row >= 0, np.maximum(row, 0)
        size = self._sizes()[at]
        for key, column in (
            ("Collective name", "name"),
            ("dtype", "dtype"),
            ("Process Group Name", "group"),
            ("Process Group Description", "group_description"),
            ("Process Group Ranks", "ranks"),
        ):
            codes = table.codes(column)[at]
            events.name(f',"{key}":', codes, table.strings, there & (codes != 0))
        for key, column in (("In msg nelems", "in_bytes"), ("Out msg nelems", "out_bytes")):
            events.number(f',"{key}":', table[column][at] // np.maximum(size, 1).astype(np.uint64), there & (size > 0))
        events.number(',"Group size":', table["group_size"][at], there)
        sequence, peer = table["sequence"][at], table["peer"][at]
        events.number(',"Seq":', sequence - np.uint64(1), there & (sequence > 0))
        for key, name in (("Dst Rank", "send"), ("Src Rank", "recv")):
            is_one = _is(table, "name", name)[at]
            events.number(f',"{key}":', peer - np.uint32(1), there & is_one & (peer > 0))
        events.same(',"Is asynchronized op":true', there & (table["is_async"][at] != 0))

    def add_inputs(self, events: Events, row: Int64) -> None:
        """Type and size, for annotations (``nccl:broadcast``)."""
        table = self._table
        if not len(table):
            return
        at = np.maximum(row, 0)
        size = self._sizes()[at]
        known = (row >= 0) & (size > 0)
        events.number(',"Input Dims":[[', table["in_bytes"][at] // np.maximum(size, 1).astype(np.uint64), known)
        events.name(']],"Input type":[', table.codes("dtype")[at], table.strings, known).same("]", known)

    def events(self, who: Identity, tid: Int64) -> Iterator[Events]:
        """Records of their own, for the collectives that are ``alone``."""
        table = self._table.where(self.alone)
        events = Events(len(table)).number(
            f',\n{{"ph":"X","cat":"cpu_op","name":"{RECORD}","pid":{who.pid},"tid":', tid
        )
        events.time(',"ts":', who.clock.since(table["start"])).time(',"dur":', table["end"] - table["start"])
        events.text(',"args":{"backend":', *_quoted(table, "backend"))
        self.add_record(events, self.alone)
        yield events.same("}}")

    def _sizes(self) -> Int64:
        """Bytes of an element of each collective; 0: unknown."""
        used, which = renumbered(self._table.codes("dtype"))
        return np.array([element_size(self._table.strings[code]) for code in used.tolist()], np.int64)[which]


def _quoted(table: Table, column: str) -> tuple[Array, list[str]]:
    used, which = renumbered(table.codes(column))
    return which, [json.dumps(table.strings[code]) for code in used.tolist()]


def _is(table: Table, column: str, text: str) -> Mask:
    used, which = renumbered(table.codes(column))
    found: Mask = np.array([table.strings[code] == text for code in used.tolist()], bool)[which]
    return found


def _same_span(slices: Table, collectives: Table) -> Int64:
    """Row of the collective of the same thread and times of each slice; -1: none."""
    row = match(slices["start"], collectives["start"])
    at = np.maximum(row, 0)
    if not len(collectives):
        return row
    same = (collectives["thread"][at] == slices["thread"]) & (collectives["end"][at] == slices["end"])
    return np.where(same, row, -1)
