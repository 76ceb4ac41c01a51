"""Regions, NVTX ranges and marks, operators and steps as rows of ``MARKER``: two a range, the second without a name."""

from __future__ import annotations

import numpy as np

from cuptiprof.data.codes import Int64
from cuptiprof.data.enums import SCOPE_SOURCES, code_of
from cuptiprof.data.tables import Array, Table
from cuptiprof.export.databases.database_writer import Column
from cuptiprof.export.databases.nvprof_run import THREAD, NvprofRun
from cuptiprof.export.databases.nvprof_schema import KIND
from cuptiprof.io.sqlite.own_domains import OPERATORS, REGIONS, STEPS

_INSTANT, _START, _END = 1, 2, 4
"""CUpti_ActivityFlag of markers"""


class NvprofMarkers:
    """Numbers ranges and marks from 1 on."""

    def __init__(self, run: NvprofRun) -> None:
        self._run, self._count = run, 0

    def add(self) -> None:
        """Every row of the table."""
        tables = self._run.result.tables
        regions, markers = tables["regions"], tables["markers"]
        is_nvtx = regions["source"] == code_of(SCOPE_SOURCES, "nvtx")
        self._add_ranges(regions.where(~is_nvtx), REGIONS)
        self._add_ranges(regions.where(is_nvtx))
        nvtx = markers.where(markers["category"] == "nvtx")
        is_mark = (nvtx["start"] == nvtx["end"]) & (nvtx["is_open"] == 0)
        self._add(nvtx.where(is_mark), _INSTANT, self._ids(int(is_mark.sum())), self._domains(nvtx.where(is_mark)))
        self._add_ranges(nvtx.where(~is_mark))
        self._add_ranges(markers.where(markers["category"] == "step"), STEPS)
        self._add_ranges(tables["operators"], OPERATORS)

    def _add_ranges(self, table: Table, domain: str | None = None) -> None:
        ids = self._ids(len(table))
        domains = self._run.texts.number(domain) if domain is not None else self._domains(table)
        self._add(table, _START, ids, domains)
        ended = table["is_open"] == 0
        self._add(table.where(ended), _END, ids[ended], domains if isinstance(domains, int) else domains[ended])

    def _add(self, table: Table, flags: int, ids: Int64, domains: Array | int) -> None:
        run = self._run
        columns: dict[str, Column] = {
            "flags": flags,
            "timestamp": run.unix(table["end" if flags == _END else "start"]),
            "id": ids,
            "objectKind": THREAD,
            "objectId": run.threads(table["thread"]),
            "name": 0 if flags == _END else run.names(table, "name"),
            "domain": domains,
        }
        run.add(KIND + "MARKER", len(table), columns)

    def _ids(self, rows: int) -> Int64:
        first = self._count + 1
        self._count += rows
        return np.arange(first, first + rows)

    def _domains(self, table: Table) -> Int64:
        codes = table.codes("domain")
        return np.where(codes == 0, 0, self._run.texts.of(codes, table.strings))
