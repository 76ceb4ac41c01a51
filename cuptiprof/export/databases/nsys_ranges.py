"""Regions, NVTX ranges and marks, operators and steps as rows of ``NVTX_EVENTS``."""

from __future__ import annotations

import numpy as np

from cuptiprof.data.codes import renumbered
from cuptiprof.data.enums import SCOPE_SOURCES, code_of
from cuptiprof.data.tables import Array, Table
from cuptiprof.export.databases.database_writer import Column, storable
from cuptiprof.export.databases.nsys_run import NsysRun
from cuptiprof.io.sqlite.own_domains import OPERATORS, REGIONS, STEPS

_MARK, _PUSH_POP, _START_END, _DOMAIN = 34, 59, 60, 75
_IN_PLACE = 256
"""characters up to which a text stands in its row, where every reader looks; longer ones stand once, in ``StringIds``"""
_NEVER = -(2**62)
"""in columns of times: NULL"""


class NsysRanges:
    """Numbers NVTX domains as they come: 0 is the default one."""

    def __init__(self, run: NsysRun) -> None:
        self._run = run
        self._domains: dict[str, int] = {"": 0}

    def add(self) -> None:
        """Every row of the table."""
        tables = self._run.result.tables
        regions = tables["regions"]
        is_nvtx = regions["source"] == code_of(SCOPE_SOURCES, "nvtx")
        self._add_ranges(_PUSH_POP, regions.where(~is_nvtx), REGIONS)
        self._add_ranges(_PUSH_POP, regions.where(is_nvtx))
        markers = tables["markers"]
        nvtx = markers.where(markers["category"] == "nvtx")
        is_mark = (nvtx["start"] == nvtx["end"]) & (nvtx["is_open"] == 0)
        self._add_ranges(_MARK, nvtx.where(is_mark))
        self._add_ranges(_START_END, nvtx.where(~is_mark))
        steps = markers.where(markers["category"] == "step")
        self._add_ranges(_START_END, steps, STEPS, {"uint64Value": steps["id"]})
        operators = tables["operators"]
        more: dict[str, Column] = {"category": operators["scope"], "uint64Value": operators["sequence"]}
        self._add_ranges(_PUSH_POP, operators, OPERATORS, more)
        self._name_domains()

    def _add_ranges(self, kind: int, table: Table, domain: str | None = None, more: dict[str, Column] | None = None) -> None:  # fmt: skip
        run = self._run
        end = run.since(table["end"])
        if kind == _MARK:
            end[:] = _NEVER
        elif "is_open" in table:
            end = np.where(table["is_open"] == 1, _NEVER, end)
        used, which = renumbered(table.codes("name"))
        texts = [storable(table.strings[code]) for code in used.tolist()]
        in_place = [text if len(text) <= _IN_PLACE else None for text in texts]
        numbers = np.array([0 if text is not None else run.texts.number(full) for text, full in zip(in_place, texts, strict=True)], np.int64)  # fmt: skip
        text_of_row = np.array([*in_place, None], object)[:-1][which]
        columns: dict[str, Column] = {
            "start": run.since(table["start"]),
            "end": end,
            "eventType": kind,
            "text": text_of_row.tolist(),
            "globalTid": run.ids.of_threads(table["thread"]),
            "textId": numbers[which] if len(numbers) else which,
            "domainId": self._domain_of(table) if domain is None else self._number(domain),
            **(more or {}),
        }
        run.add("NVTX_EVENTS", len(table), columns, {"end": _NEVER, "textId": 0, "uint64Value": 0})

    def _number(self, domain: str) -> int:
        return self._domains.setdefault(domain, len(self._domains))

    def _domain_of(self, table: Table) -> Array:
        used, which = renumbered(table.codes("domain"))
        numbers = np.array([self._number(table.strings[code]) for code in used.tolist()], np.int64)
        return numbers[which] if len(numbers) else which

    def _name_domains(self) -> None:
        """A row that makes each domain, of each process."""
        pairs = [(pid, name, number) for pid in self._run.ids.processes() for name, number in self._domains.items() if number]  # fmt: skip
        columns: dict[str, Column] = {
            "start": 0,
            "eventType": _DOMAIN,
            "text": [storable(name) for _, name, _ in pairs],
            "globalTid": self._run.ids.pid(np.array([pid for pid, _, _ in pairs], np.int64)),
            "domainId": np.array([number for _, _, number in pairs], np.int64),
        }
        self._run.add("NVTX_EVENTS", len(pairs), columns)
