"""The tables of nvprof: CUPTI's activity records as they came, and their names in ``StringTable``.

Calls are known by their callback IDs. An NVTX range is two markers, of which the second has no name; a thread is in the bytes of ``objectId``.
Sources: ``torch.autograd.profiler.parse_nvprof_trace``; CUPTI's ``CUpti_Activity*`` structs, whose fields the columns are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from cuptiprof.data.callback_ids import callback_names
from cuptiprof.data.result import Progress, Result
from cuptiprof.data.tables import Strings
from cuptiprof.io.sqlite.database import Database, Int64
from cuptiprof.io.sqlite.finished import Making, finished
from cuptiprof.io.sqlite.table_rows import LeftOut, TableRows
from cuptiprof.io.sqlite.work_rows import CONFIG, PLACE, SPAN, Texts, configs, place, with_configs

_KIND = "CUPTI_ACTIVITY_KIND_"
_INSTANT, _START, _END = 1, 2, 4  # CUpti_ActivityFlag of markers
_THREAD = 2  # CUpti_ActivityObjectKind
_ASYNC = 1  # CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC
_PEER = 10
OF_DEVICE = {
    "globalMemorySize": "global_memory_size",
    "globalMemoryBandwidth": "global_memory_bandwidth",
    "constantMemorySize": "constant_memory_size",
    "l2CacheSize": "l2_cache_size",
    "numThreadsPerWarp": "threads_per_warp",
    "coreClockRate": "core_clock_rate",
    "numMemcpyEngines": "num_memcpy_engines",
    "numMultiprocessors": "num_multiprocessors",
    "maxIPC": "max_ipc",
    "maxWarpsPerMultiprocessor": "max_warps_per_multiprocessor",
    "maxBlocksPerMultiprocessor": "max_blocks_per_multiprocessor",
    "maxSharedMemoryPerMultiprocessor": "max_shared_memory_per_multiprocessor",
    "maxRegistersPerMultiprocessor": "max_registers_per_multiprocessor",
    "maxRegistersPerBlock": "max_registers_per_block",
    "maxSharedMemoryPerBlock": "max_shared_memory_per_block",
    "maxThreadsPerBlock": "max_threads_per_block",
    "maxBlockDimX": "max_block_dim_x",
    "maxBlockDimY": "max_block_dim_y",
    "maxBlockDimZ": "max_block_dim_z",
    "maxGridDimX": "max_grid_dim_x",
    "maxGridDimY": "max_grid_dim_y",
    "maxGridDimZ": "max_grid_dim_z",
    "computeCapabilityMajor": "compute_capability_major",
    "computeCapabilityMinor": "compute_capability_minor",
    "eccEnabled": "ecc_enabled",
    "id": "device",
}
_64_BITS = ("global_memory_size", "global_memory_bandwidth")


class NvprofTables:
    """A database of nvprof."""

    _USED: ClassVar[frozenset[str]] = frozenset(
        _KIND + kind
        for kind in ("KERNEL", "CONCURRENT_KERNEL", "MEMCPY", "MEMCPY2", "MEMSET", "RUNTIME", "DRIVER", "MARKER", "OVERHEAD",
                     "SYNCHRONIZATION", "DEVICE", "CONTEXT", "NAME", "MARKER_DATA", "DEVICE_ATTRIBUTE", "MODULE", "FUNCTION")
    )  # fmt: skip

    def __init__(self, database: Database) -> None:
        self._database, self._left_out = database, LeftOut()
        self._strings = Strings()
        self._texts = Texts(database.strings("StringTable", "_id_", "value"), self._strings)

    @staticmethod
    def knows(database: Database) -> bool:
        """Whether it is one."""
        return database.has("StringTable") and any(name.startswith(_KIND) for name in database.tables)

    def result(self, name: str, progress: Progress | None) -> Result:
        """Everything that has a place."""
        making = Making(self._strings, self._left_out)
        steps: tuple[tuple[str, Callable[[], dict[str, Any]]], ...] = (
            ("kernels", lambda: _joined(self._kernels("KERNEL"), self._kernels("CONCURRENT_KERNEL"))),
            ("memcpys", lambda: _joined(self._copies("MEMCPY"), self._copies("MEMCPY2"))),
            ("memsets", self._sets),
            ("api_calls", lambda: _joined(self._calls("RUNTIME"), self._calls("DRIVER"))),
            ("synchronizations", self._synchronizations),
            ("overhead", self._overhead),
            ("contexts", self._contexts),
            ("devices", self._devices),
        )
        for done, (table, make) in enumerate(steps):
            made = make()
            if table == "kernels":
                making.tables["launch_configs"] = with_configs(made)
            making.tables[table] = made
            if progress is not None:
                progress(done + 1, len(steps) + 1)
        # A database is of one process, which only its calls name.
        used = np.unique(making.tables["api_calls"]["process"])
        for table in ("kernels", "memcpys", "memsets", *(("api_calls",) if len(used) > 1 else ())):
            making.tables[table]["process"][:] = used[0] if len(used) == 1 else 0
        making.tables["graph_launches"] = {name: np.zeros(0, np.int64) for name in ("correlation_id", "process")}
        self._markers(making)
        making.take_facts(self._database, "CUPTIPROF_METADATA")
        for table in self._database.tables:
            if table.startswith(_KIND) and table not in self._USED:
                self._left_out.not_kept(table, self._database.count(table))
        return finished(making, name, {"tool": "nvprof"}, 0)

    def _rows(self, kind: str, *columns: str) -> TableRows:
        return TableRows(self._database, self._left_out, _KIND + kind, columns)

    def _work(self, kind: str, *columns: str) -> tuple[TableRows, dict[str, Any]]:
        rows = self._rows(kind, *SPAN, *PLACE, *columns)
        start, end = rows.span()
        return rows, {"start": start, "end": end, **place(rows), "process": np.zeros(len(rows), np.int64)}

    def _kernels(self, kind: str) -> dict[str, Any]:
        rows, made = self._work(kind, "name", "completed", *CONFIG)
        completed = np.maximum(rows.number("completed"), 0)
        return rows.kept(
            {**made, "name": self._texts.codes(rows.number("name")), "completed": completed, **configs(rows)}
        )

    def _copies(self, kind: str) -> dict[str, Any]:
        ends = ("srcDeviceId", "dstDeviceId", "srcContextId", "dstContextId")
        rows, made = self._work(kind, "bytes", "copyKind", "srcKind", "dstKind", "flags", *ends)
        for side in ("src", "dst"):
            made[f"{side}_kind"] = _below(rows.number(f"{side}Kind"), 8)
            for what, column in (("device", "Device"), ("context", "Context")):
                made[f"{side}_{what}"] = np.where(
                    rows.has(f"{side}{column}Id"), rows.count(f"{side}{column}Id"), made[what]
                )
        return rows.kept(
            {
                **made,
                "bytes": rows.count("bytes", 63),
                "copy_kind": _below(rows.number("copyKind"), _PEER + 1),
                "is_async": rows.number("flags") & _ASYNC,
                "is_peer": np.full(len(rows), int(kind == "MEMCPY2")),
            }
        )

    def _sets(self) -> dict[str, Any]:
        rows, made = self._work("MEMSET", "bytes", "value", "memoryKind", "flags")
        return rows.kept(
            {
                **made,
                "bytes": rows.count("bytes", 63),
                "value": rows.low32("value"),
                "memory_kind": _below(rows.number("memoryKind"), 8),
                "is_async": rows.number("flags") & _ASYNC,
            }
        )

    def _calls(self, kind: str) -> dict[str, Any]:
        rows = self._rows(kind, *SPAN, "cbid", "processId", "threadId", "correlationId", "returnValue")
        start, end = rows.span()
        cbid = rows.count("cbid")
        used, which = np.unique(cbid, return_inverse=True)
        domain = kind.lower()
        names = [callback_names().get((domain, number), f"{domain} call {number}") for number in used.tolist()]
        codes = np.array([self._strings.code(name) for name in names], np.int64)
        return rows.kept(
            {
                "start": start,
                "end": end,
                "name": codes[which.reshape(-1)],
                "cbid": cbid,
                "correlation_id": rows.count("correlationId"),
                "process": rows.low32("processId"),
                "thread": rows.low32("threadId"),
                "return_value": rows.low32("returnValue"),
                "domain": np.full(len(rows), int(kind == "DRIVER")),
            }
        )

    def _synchronizations(self) -> dict[str, Any]:
        rows = self._rows("SYNCHRONIZATION", *SPAN, "contextId", "streamId", "correlationId", "type", "cudaEventId")
        start, end = rows.span()
        return rows.kept(
            {
                "start": start,
                "end": end,
                "context": rows.count("contextId"),
                "stream": rows.low32("streamId"),
                "event": rows.low32("cudaEventId"),
                "correlation_id": rows.count("correlationId"),
                "type": _below(rows.number("type"), 5),
            }
        )

    def _overhead(self) -> dict[str, Any]:
        rows = self._rows("OVERHEAD", *SPAN, "overheadKind")
        start, end = rows.span()
        return rows.kept({"start": start, "end": end, "kind": rows.count("overheadKind")})

    def _contexts(self) -> dict[str, Any]:
        rows = self._rows("CONTEXT", "contextId", "deviceId", "nullStreamId")
        return rows.kept(
            {
                "context": rows.count("contextId"),
                "device": rows.count("deviceId"),
                "null_stream": rows.count("nullStreamId"),
            }
        )

    def _devices(self) -> dict[str, Any]:
        rows = self._rows("DEVICE", "name", *OF_DEVICE)
        made = {name: rows.count(column, 63 if name in _64_BITS else 32) for column, name in OF_DEVICE.items()}
        return rows.kept({**made, "name": self._texts.codes(rows.number("name"))})

    def _markers(self, making: Making) -> None:
        rows = self._rows("MARKER", "flags", "timestamp", "id", "objectKind", "name", "domain")
        flags = rows.number("flags")
        raw = self._database.blobs(_KIND + "MARKER", "objectId", 8)
        if not len(raw):
            raw = np.zeros((len(rows), 8), np.uint8)
        # CUpti_ActivityObjectKindId: the process, then the thread.
        thread = np.where(rows.number("objectKind") == _THREAD, raw.view("<u4")[:, 1].astype(np.int64), 0)
        name, domain = self._texts.codes(rows.number("name")), self._texts.codes(rows.number("domain"))
        marks = rows.kept(
            {
                "start": rows.time("timestamp"),
                "id": rows.number("id"),
                "thread": thread,
                "name": name,
                "domain": domain,
                "flags": flags,
            }
        )
        ends = (marks["flags"] & _END > 0) | ((marks["flags"] & (_INSTANT | _START) == 0) & (marks["name"] == 0))
        begins = ~ends & (marks["flags"] & _INSTANT == 0)
        instant = ~ends & ~begins
        order = np.flatnonzero(ends)
        order = order[np.argsort(marks["id"][order], kind="stable")]
        at = np.searchsorted(marks["id"][order], marks["id"][begins])
        end = order[np.minimum(at, len(order) - 1)] if len(order) else np.full(int(begins.sum()), -1)
        found = (end >= 0) & (marks["id"][end] == marks["id"][begins]) if len(marks["id"]) else np.zeros(0, bool)
        scopes = {column: marks[column][begins] for column in ("start", "thread", "name", "domain")}
        scopes["end"] = (
            np.where(found, np.maximum(marks["start"][end], scopes["start"]), scopes["start"])
            if len(found)
            else scopes["start"]
        )
        scopes["is_open"] = (~found).astype(np.int64)
        # One that ends on another thread is no nested range.
        crossing = found & (marks["thread"][end] != scopes["thread"]) if len(found) else found
        making.regions = {column: values[~crossing] for column, values in scopes.items()}
        of_marks = {column: marks[column][instant] for column in ("start", "thread", "name", "domain")}
        of_marks |= {"end": of_marks["start"], "is_open": np.zeros(int(instant.sum()), np.int64)}
        markers = {column: np.r_[values[crossing], of_marks[column]] for column, values in scopes.items()}
        category = self._strings.code("nvtx")
        making.tables["markers"] = {**markers, "category": np.full(len(markers["start"]), category)}


def _below(values: Int64, limit: int) -> Int64:
    """0, unknown, for what is no value of an enumeration."""
    return np.where((values >= 0) & (values < limit), values, 0)


def _joined(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    return {name: np.concatenate([values, second[name]]) for name, values in first.items()}
