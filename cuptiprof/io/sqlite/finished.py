"""The tables of a database put together as a result."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cuptiprof.data.result import Losses, Result
from cuptiprof.data.tables import Strings, Table, schema
from cuptiprof.io.sqlite.database import Database, Int64
from cuptiprof.io.sqlite.nvtx_ranges import NvtxRanges
from cuptiprof.io.sqlite.own_domains import LOST, PRODUCER, SIMULATED
from cuptiprof.io.sqlite.own_scopes import OperatorRanges, sort_out
from cuptiprof.io.sqlite.table_rows import LeftOut
from cuptiprof.io.sqlite.work_calls import Launches

_DIGITS = 19


@dataclass
class Making:
    """What has been read.

    Attributes:
        tables: columns by table; those of work, calls and the like with a column "process", which not every table has.
        facts: by name, of a database of ours; else none.
        regions: start, end, thread, name, domain and is_open of NVTX ranges that were pushed and popped; of operators in our own
            databases sequence and scope, too, where the layout has a place for them.
    """

    strings: Strings
    left_out: LeftOut
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    regions: dict[str, Int64] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)

    def take_facts(self, database: Database, table: str) -> None:
        """What a database of ours says of its run, in a table of names and values."""
        names, values = database.texts(table, "name"), database.texts(table, "value")
        found = dict(zip(names, values, strict=False))
        if found.get(PRODUCER, "").startswith("cuptiprof "):
            self.facts = found

    def lost(self) -> dict[str, int]:
        """Losses of the run that it was made of."""
        counts = {name: self.facts.get(LOST + name, "") for name in Losses.DOCS}
        return {name: int(text) for name, text in counts.items() if text.isdecimal() and len(text) < _DIGITS}


def finished(making: Making, name: str, origin: dict[str, Any], unix_time: int | None) -> Result:
    """The result.

    Args:
        name: of the file.
        origin: what made it.
        unix_time: of the database's time 0, ns; None: not known.
    """
    tables = making.tables
    last = max((int(t["end"].max()) for t in (*tables.values(), making.regions) if len(t.get("end", ()))), default=0)
    operators = sort_out(making.regions, tables["markers"], making.strings)
    for scopes in (making.regions, operators, tables["markers"]):  # what was not left ends with the recording
        scopes["end"] = np.where(scopes["is_open"] > 0, np.maximum(last, scopes["start"]), scopes["end"])
    launches, ranges = Launches(tables), NvtxRanges(making.regions, making.strings)
    places = OperatorRanges(operators, making.strings)
    launches.place(ranges, places)
    launches.number_afresh()
    tables["regions"], tables["operators"] = ranges.columns(), places.columns(ranges)
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
        "simulated": making.facts.get(SIMULATED) == "true",
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
    found = {
        "orphan_correlations": launches.orphans,
        "texts_lost": ranges.cut,
        "unknown_records": making.left_out.count,
    }
    before = making.lost()
    losses = {name: max(found.get(name, 0), before.get(name, 0)) for name in {**found, **before}}
    return Result(made, metadata, losses)
