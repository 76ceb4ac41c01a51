"""The tables of a database put together as a result."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cuptiprof.data.result import Result
from cuptiprof.data.tables import Strings, Table, schema
from cuptiprof.io.sqlite.database import Int64
from cuptiprof.io.sqlite.nvtx_ranges import NvtxRanges
from cuptiprof.io.sqlite.table_rows import LeftOut
from cuptiprof.io.sqlite.work_calls import Launches


@dataclass
class Making:
    """What has been read.

    Attributes:
        tables: columns by table; those of work, calls and the like with a column "process", which not every table has.
        regions: start, end, thread, name, domain and is_open of NVTX ranges that were pushed and popped.
    """

    strings: Strings
    left_out: LeftOut
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    regions: dict[str, Int64] = field(default_factory=dict)


def finished(making: Making, name: str, origin: dict[str, Any], unix_time: int | None) -> Result:
    """The result.

    Args:
        name: of the file.
        origin: what made it.
        unix_time: of the database's time 0, ns; None: not known.
    """
    tables = making.tables
    last = max((int(t["end"].max()) for t in (*tables.values(), making.regions) if len(t.get("end", ()))), default=0)
    for scopes in (making.regions, tables["markers"]):  # what was not left ends with the recording
        scopes["end"] = np.where(scopes["is_open"] > 0, np.maximum(last, scopes["start"]), scopes["end"])
    launches, ranges = Launches(tables), NvtxRanges(making.regions, making.strings)
    launches.place(ranges)
    launches.number_afresh()
    tables["regions"] = ranges.columns()
    processes = sorted({int(p) for t in tables.values() for p in np.unique(t.get("process", ())).tolist() if p})
    made: dict[str, Table] = {}
    for table, columns in tables.items():
        known = {column: values for column, values in columns.items() if column in schema()[table]}
        rows = len(next(iter(columns.values()))) if columns else 0
        made[table] = Table.from_columns(table, known, making.strings, rows=rows)
    made["kernels"].configs = made["launch_configs"]
    metadata: dict[str, Any] = {
        "format": 1,
        "device": f"import:{name}",
        "simulated": False,
        "origin": {"file": name, **origin},
        **({"processes": processes} if len(processes) > 1 else {}),
        **making.left_out.metadata(),
    }
    spans = [t for t in made.values() if "start" in t and len(t)]
    if spans:
        begin = int(min(np.min(t["start"]) for t in spans))
        metadata["start_time_ns"] = begin
        metadata["stop_time_ns"] = int(max(np.max(t["end"]) for t in spans))
        if unix_time is not None:
            metadata["clock_pairs"] = [[begin, begin + unix_time]]
    losses = {
        "orphan_correlations": launches.orphans,
        "texts_lost": ranges.cut,
        "unknown_records": making.left_out.count,
    }
    return Result(made, metadata, losses)
