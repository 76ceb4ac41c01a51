"""import(export(run)): which rows of which tables each format keeps, for runs of every kind of row, and that docs/exporting.md says so."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from perfetto_trace import Trace
from whole_runs import whole_run

import cuptiprof
from cuptiprof.data.result import Result
from cuptiprof.data.tables import schema
from cuptiprof.text.names import display_name

PAGE = Path(__file__).resolve().parents[2] / "docs" / "exporting.md"
FILES = {
    "Chrome": "t.json.gz",
    "Perfetto": "t.pftrace",
    "nsys": "t.sqlite",
    "nvprof": "t.nvprof",
    "saved run": "t.cuptiprof",
}
NOT_KEPT = "no"

_SPAN = ("start", "end")
_WORK = (*_SPAN, "correlation_id", "device", "context", "stream", "thread", "region")
_SIZES = tuple(f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz")
KEPT: dict[str, dict[str, tuple[str, ...]]] = {
    "Chrome": {
        "kernels": (*_WORK, "name", *_SIZES, "registers_per_thread"),
        "memcpys": (*_WORK, "bytes", "copy_kind", "src_kind", "dst_kind"),
        "memsets": (*_WORK, "bytes", "memory_kind"),
        "api_calls": (*_SPAN, "name", "correlation_id", "thread", "process", "domain", "cbid"),
        "synchronizations": (*_SPAN, "type", "context", "stream", "correlation_id"),
        "overhead": _SPAN,
        "devices": ("device", "name", "num_multiprocessors", "compute_capability_major", "global_memory_size"),
        "regions": (*_SPAN, "name", "thread"),
        "operators": (*_SPAN, "name", "thread", "sequence"),
        "collectives": ("name", "start", "in_bytes", "out_bytes", "group_size", "dtype"),
        "system_samples": ("timestamp", "value", "counter", "device"),
    },
    "nsys": {
        "kernels": (*_WORK, "operator", "name", *_SIZES, "registers_per_thread", "static_shared_memory"),
        "memcpys": (*_WORK, "operator", "bytes", "copy_kind", "src_kind", "dst_kind"),
        "memsets": (*_WORK, "operator", "bytes", "memory_kind", "value"),
        "api_calls": (*_SPAN, "name", "correlation_id", "thread", "process", "domain", "region"),
        "synchronizations": (*_SPAN, "type", "context", "stream", "event", "correlation_id"),
        "cuda_events": ("event", "stream", "context", "correlation_id"),
        "memory": ("timestamp", "address", "bytes", "operation", "memory_kind", "stream", "correlation_id"),
        "graph_launches": (*_SPAN, "correlation_id", "graph_id", "stream"),
        "overhead": (*_SPAN, "kind", "thread"),
        "contexts": ("context", "device", "null_stream"),
        "streams": ("context", "stream", "priority", "flag"),
        "devices": ("device", "name", "num_multiprocessors", "compute_capability_major", "global_memory_size", "core_clock_rate"),
        "regions": (*_SPAN, "name", "path", "thread", "depth", "source", "domain"),
        "operators": (*_SPAN, "name", "thread", "region", "sequence"),
        "markers": (*_SPAN, "name", "category", "domain", "thread", "id"),
    },
    "nvprof": {
        "kernels": (*_WORK, "operator", "name", *_SIZES, "registers_per_thread", "static_shared_memory"),
        "memcpys": (*_WORK, "operator", "bytes", "copy_kind", "src_kind", "dst_kind", "is_async"),
        "memsets": (*_WORK, "operator", "bytes", "memory_kind", "value", "is_async"),
        "api_calls": (*_SPAN, "name", "correlation_id", "thread", "process", "domain", "cbid", "region"),
        "synchronizations": (*_SPAN, "type", "context", "stream", "event", "correlation_id"),
        "overhead": (*_SPAN, "kind"),
        "contexts": ("context", "device", "null_stream"),
        "devices": ("device", "name", "num_multiprocessors", "compute_capability_major", "global_memory_size", "core_clock_rate"),
        "regions": (*_SPAN, "name", "path", "thread", "depth", "source", "domain"),
        "operators": (*_SPAN, "name", "thread", "region"),
    },
    "saved run": {name: tuple(columns) for name, columns in schema().items()},
}  # fmt: skip
"""Format -> table -> the columns that come back."""
SLICES = {
    "kernels": ("kernel",), "memcpys": ("gpu_memcpy",), "memsets": ("gpu_memset",), "api_calls": ("cuda_runtime", "cuda_driver"),
    "operators": ("cpu_op",), "synchronizations": ("cuda_sync",), "overhead": ("overhead",), "graph_launches": ("cuda_graph",),
    "collectives": ("collective",), "regions": ("user_annotation",), "markers": ("user_annotation",),
}  # fmt: skip
"""Table -> categories of its slices in a Perfetto trace."""


def rows(result: Result, table: str, columns: tuple[str, ...]) -> Counter[tuple[Any, ...]]:
    """Rows by what they say, times as Unix times, names as they are shown."""
    found = []
    for column in columns:
        values = result.tables[table][column].tolist()
        if column in ("start", "end", "timestamp"):
            values = [result.clock_to_unix(value) for value in values]
        elif column == "name":
            values = [display_name(value) for value in values]
        found.append([str(value) if value != value else value for value in values])
    return Counter(zip(*found, strict=True))


def of_format(result: Result, format: str, folder: Path) -> Result:
    path = folder / FILES[format]
    (result.save if format == "saved run" else result.export)(path, overwrite=True)
    return cuptiprof.open(path)


@pytest.mark.parametrize("format", KEPT)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32 - 1))
def test_tables_come_back(format: str, tmp_path: Path, seed: int) -> None:
    result = whole_run(seed)
    again = of_format(result, format, tmp_path)
    for table, columns in KEPT[format].items():
        before, after = rows(result, table, columns), rows(again, table, columns)
        # Steps and ranges with a start and an end are annotations like regions in a Chrome trace, and pushed ranges in nvprof's tables.
        assert before <= after if table in ("regions", "operators") else before == after, (
            table,
            before - after,
            after - before,
        )


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32 - 1))
def test_slices_come_back_from_perfetto(tmp_path: Path, seed: int) -> None:
    result = whole_run(seed)
    trace = Trace(result, tmp_path)
    spans = {
        category: Counter(
            (display_name(s["name"]), trace.base + s["start"], trace.base + s["end"]) for s in trace.of(category)
        )
        for category in {c for categories in SLICES.values() for c in categories}
    }
    named = {"kernels", "api_calls", "operators", "regions", "markers"}
    for table, categories in SLICES.items():
        found = sum((spans[c] for c in categories), Counter())
        expected = rows(result, table, ("name", *_SPAN) if table in named else _SPAN)
        if table not in named:
            found = Counter({key[1:]: count for key, count in found.items()})
        assert expected <= found if table in ("regions", "markers") else expected == found, table


@cache
def documented() -> dict[str, dict[str, str]]:
    """Format -> table -> what the page says of it."""
    text = PAGE.read_text()
    lines = re.findall(r"^\| (?:`\w+`|table).*\|$", text[text.index("## What comes back") :], re.MULTILINE)
    header, *body = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return {format: {row[0].strip("`"): row[i] for row in body} for i, format in enumerate(header) if i}


@pytest.mark.parametrize("format", FILES)
def test_the_page_says_what_is_kept(format: str, tmp_path: Path) -> None:
    said = documented()[format]
    assert list(said) == list(schema())
    if format == "Perfetto":
        kept = set(SLICES)
    else:
        result = whole_run(1)
        assert all(len(table) for table in result.tables.values())
        again = of_format(result, format, tmp_path)
        kept = {name for name, table in again.tables.items() if len(table)}
        assert set(KEPT[format]) <= kept
    assert {name for name, cell in said.items() if cell != NOT_KEPT} >= kept
    if format != "Perfetto":
        assert {name for name, cell in said.items() if cell != NOT_KEPT} == kept


def test_losses_and_the_mark_of_simulated_runs(tmp_path: Path) -> None:
    result = whole_run(3)
    result.metadata["simulated"] = True
    for format in ("nsys", "nvprof", "saved run"):
        again = of_format(result, format, tmp_path)
        assert again.simulated and again.losses["pool_exhausted"] == result.losses["pool_exhausted"], format
