"""The tables of Nsight Systems.

Which columns there are differs from version to version: what is missing is as if it said nothing. ``globalTid`` is the thread in its low 24
bits, the process in the 24 above, then the machine. Times count from the start of the session (``TARGET_INFO_SESSION_START_TIME``).
Source: "SQLite Export Schema Reference" of Nsight Systems 2019 to 2025.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from cuptiprof.data.codes import renumbered
from cuptiprof.data.enums import OVERHEAD_KINDS, code_of
from cuptiprof.data.result import Progress, Result
from cuptiprof.data.tables import Strings
from cuptiprof.io.sqlite.database import Database, Int64
from cuptiprof.io.sqlite.finished import Making, finished
from cuptiprof.io.sqlite.table_rows import LONGEST, LeftOut, TableRows
from cuptiprof.io.sqlite.work_rows import CONFIG, PLACE, SPAN, Texts, configs, place, with_configs

_KIND = "CUPTI_ACTIVITY_KIND_"
_MARK, _PUSH_POP, _START_END, _DOMAIN = 34, 59, 60, 75
_NO_STREAM = 0xFFFFFFFF
_UNIFIED = {11: 1, 12: 2, 13: 8}  # HtoD, DtoH and DtoD of unified memory
_LARGEST_COPY_KIND = 10
OF_GPU = {
    "smCount": "num_multiprocessors",
    "totalMemory": "global_memory_size",
    "l2CacheSize": "l2_cache_size",
    "constantMemory": "constant_memory_size",
    "maxIPC": "max_ipc",
    "maxRegistersPerBlock": "max_registers_per_block",
    "maxRegistersPerSm": "max_registers_per_multiprocessor",
    "maxShmemPerBlock": "max_shared_memory_per_block",
    "maxShmemPerSm": "max_shared_memory_per_multiprocessor",
    "threadsPerWarp": "threads_per_warp",
    "asyncEngines": "num_memcpy_engines",
    "maxWarpsPerSm": "max_warps_per_multiprocessor",
    "maxBlocksPerSm": "max_blocks_per_multiprocessor",
    "maxThreadsPerBlock": "max_threads_per_block",
    "maxBlockDimX": "max_block_dim_x",
    "maxBlockDimY": "max_block_dim_y",
    "maxBlockDimZ": "max_block_dim_z",
    "maxGridDimX": "max_grid_dim_x",
    "maxGridDimY": "max_grid_dim_y",
    "maxGridDimZ": "max_grid_dim_z",
    "computeMajor": "compute_capability_major",
    "computeMinor": "compute_capability_minor",
}


class NsysTables:
    """A database of Nsight Systems."""

    _USED: ClassVar[frozenset[str]] = frozenset(
        {_KIND + kind for kind in ("KERNEL", "MEMCPY", "MEMSET", "RUNTIME", "SYNCHRONIZATION", "CUDA_EVENT", "GRAPH_TRACE")}
        | {"NVTX_EVENTS", "CUDA_GPU_MEMORY_USAGE_EVENTS", "PROFILER_OVERHEAD"}
    )  # fmt: skip

    def __init__(self, database: Database) -> None:
        self._database, self._left_out = database, LeftOut()
        self._strings = Strings()
        self._texts = Texts(database.strings("StringIds", "id", "value"), self._strings)

    @staticmethod
    def knows(database: Database) -> bool:
        """Whether it is one."""
        return database.has("StringIds") and any(
            name.startswith((_KIND, "NVTX_EVENTS", "TARGET_INFO_")) for name in database.tables
        )

    def result(self, name: str, progress: Progress | None) -> Result:
        """Everything that has a place."""
        steps = (
            ("kernels", self._kernels),
            ("memcpys", self._copies),
            ("memsets", self._sets),
            ("graph_launches", self._graphs),
            ("api_calls", self._calls),
            ("synchronizations", self._synchronizations),
            ("cuda_events", self._cuda_events),
            ("memory", self._memory),
            ("overhead", self._overhead),
            ("contexts", self._contexts),
            ("streams", self._streams),
            ("devices", self._devices),
        )
        making = Making(self._strings, self._left_out)
        for done, (table, make) in enumerate(steps):
            made = make()
            if table == "kernels":
                making.tables["launch_configs"] = with_configs(made)
            making.tables[table] = made
            if progress is not None:
                progress(done + 1, len(steps) + 1)
        self._nvtx(making)
        making.take_facts(self._database, "META_DATA_CAPTURE")
        for table, columns in self._database.tables.items():
            if table not in self._USED and {"start", "timestamp"} & set(columns):
                self._left_out.not_kept(table, self._database.count(table))
        return finished(making, name, self._origin(), self._session_start())

    def _rows(self, table: str, *columns: str) -> TableRows:
        return TableRows(self._database, self._left_out, table, columns)

    def _work(self, kind: str, *columns: str) -> tuple[TableRows, dict[str, Any]]:
        rows = self._rows(_KIND + kind, *SPAN, *PLACE, "globalPid", *columns)
        start, end = rows.span()
        return rows, {"start": start, "end": end, **place(rows), "process": _process(rows.number("globalPid"))}

    def _kernels(self) -> dict[str, Any]:
        names = ("mangledName", "demangledName", "shortName")
        rows, made = self._work("KERNEL", *names, "graphId", "graphNodeId", *CONFIG)
        made["name"] = np.zeros(len(rows), np.int64)
        for column in names:  # the first that says something
            made["name"] = np.where(made["name"] == 0, self._texts.codes(rows.number(column)), made["name"])
        made |= {"graph_id": rows.count("graphId"), "graph_node_id": rows.count("graphNodeId", 64), **configs(rows)}
        return rows.kept(made)

    def _copies(self) -> dict[str, Any]:
        ends = ("srcDeviceId", "dstDeviceId", "srcContextId", "dstContextId")
        rows, made = self._work("MEMCPY", "bytes", "copyKind", "srcKind", "dstKind", "graphNodeId", *ends)
        kind = rows.number("copyKind")
        for unified, stands_for in _UNIFIED.items():
            kind = np.where(kind == unified, stands_for, kind)
        for side in ("src", "dst"):
            made[f"{side}_kind"] = _memory_kind(rows, f"{side}Kind")
            for what, column in (("device", "Device"), ("context", "Context")):
                given = rows.count(f"{side}{column}Id")
                # 0 is what is written where a copy has no other side.
                said = rows.has(f"{side}{column}Id") & (
                    (kind == _LARGEST_COPY_KIND) if what == "device" else (given != 0)
                )
                made[f"{side}_{what}"] = np.where(said, given, made[what])
        made["is_peer"] = (kind == _LARGEST_COPY_KIND).astype(np.int64)
        made["copy_kind"] = np.where((kind >= 0) & (kind <= _LARGEST_COPY_KIND), kind, 0)
        return rows.kept({**made, "bytes": rows.count("bytes", 63), "graph_node_id": rows.count("graphNodeId", 64)})

    def _sets(self) -> dict[str, Any]:
        rows, made = self._work("MEMSET", "bytes", "value", "memKind", "graphNodeId")
        return rows.kept(
            {
                **made,
                "bytes": rows.count("bytes", 63),
                "value": rows.low32("value"),
                "memory_kind": _memory_kind(rows, "memKind"),
                "graph_node_id": rows.count("graphNodeId", 64),
            }
        )

    def _graphs(self) -> dict[str, Any]:
        rows, made = self._work("GRAPH_TRACE", "graphId", "graphExecId")
        graph = np.where(rows.has("graphExecId"), rows.count("graphExecId"), rows.count("graphId"))
        return rows.kept({**made, "graph_id": graph})

    def _calls(self) -> dict[str, Any]:
        rows = self._rows(_KIND + "RUNTIME", *SPAN, "globalTid", "correlationId", "nameId", "returnValue")
        start, end = rows.span()
        kept = rows.kept(
            {
                "start": start,
                "end": end,
                "name": self._texts.codes(rows.number("nameId"), api=True),
                "correlation_id": rows.count("correlationId"),
                "return_value": rows.low32("returnValue"),
                **_thread(rows),
            }
        )
        used, which = np.unique(kept["name"], return_inverse=True)
        names = [self._strings[code] for code in used.tolist()]
        # cudaMalloc is the runtime's, cuMemAlloc the driver's.
        driver = np.array([name.startswith("cu") and name[2:3].isupper() for name in names], np.int64)
        kept["domain"] = driver[which.reshape(-1)] if len(driver) else np.zeros(0, np.int64)
        return kept

    def _synchronizations(self) -> dict[str, Any]:
        rows = self._rows(
            _KIND + "SYNCHRONIZATION",
            *SPAN,
            "contextId",
            "streamId",
            "correlationId",
            "syncType",
            "eventId",
            "globalPid",
        )
        start, end = rows.span()
        kind = rows.number("syncType")
        return rows.kept(
            {
                "start": start,
                "end": end,
                "context": rows.count("contextId"),
                "stream": np.where(rows.has("streamId"), rows.low32("streamId"), _NO_STREAM),
                "event": np.where(rows.has("eventId"), rows.low32("eventId"), _NO_STREAM),
                "correlation_id": rows.count("correlationId"),
                "type": np.where((kind >= 0) & (kind <= 4), kind, 0),
                "process": _process(rows.number("globalPid")),
            }
        )

    def _cuda_events(self) -> dict[str, Any]:
        rows = self._rows(_KIND + "CUDA_EVENT", *PLACE, "eventId", "globalPid")
        return rows.kept({**place(rows), "event": rows.low32("eventId"), "process": _process(rows.number("globalPid"))})

    def _memory(self) -> dict[str, Any]:
        rows = self._rows(
            "CUDA_GPU_MEMORY_USAGE_EVENTS", "start", *PLACE, "globalPid", "address", "bytes", "memKind", "memoryOperationType"
        )  # fmt: skip
        operation = rows.number("memoryOperationType", -1)
        rows.refuse((operation < 0) | (operation > 1), "it is neither an allocation nor a release")
        return rows.kept(
            {
                **place(rows),
                "timestamp": rows.time("start"),
                "address": rows.number("address").astype(np.uint64),
                "bytes": rows.count("bytes", 63),
                "memory_kind": _memory_kind(rows, "memKind"),
                "operation": operation + 1,
                "process": _process(rows.number("globalPid")),
            }
        )

    def _overhead(self) -> dict[str, Any]:
        rows = self._rows("PROFILER_OVERHEAD", *SPAN, "globalTid", "nameId")
        start, end = rows.span()
        names, which = renumbered(rows.number("nameId"))
        kinds = [code_of(OVERHEAD_KINDS, self._texts.texts.get(number, "")) for number in names.tolist()]
        return rows.kept({"start": start, "end": end, "kind": np.array(kinds, np.int64)[which], **_thread(rows)})

    def _contexts(self) -> dict[str, Any]:
        rows = self._rows(
            "TARGET_INFO_CUDA_CONTEXT_INFO",
            "contextId",
            "deviceId",
            "nullStreamId",
            "parentContextId",
            "isGreenContext",
        )
        return rows.kept(
            {
                "context": rows.count("contextId"),
                "device": rows.count("deviceId"),
                "null_stream": rows.count("nullStreamId"),
                "parent": rows.count("parentContextId"),
                "is_green": rows.count("isGreenContext", 1),
            }
        )

    def _streams(self) -> dict[str, Any]:
        rows = self._rows("TARGET_INFO_CUDA_STREAM", "contextId", "streamId", "priority", "flag")
        priority = rows.number("priority")
        return rows.kept(
            {
                "context": rows.count("contextId"),
                "stream": rows.count("streamId"),
                "priority": np.clip(priority, -(2**31), 2**31 - 1),
                "flag": rows.count("flag"),
            }
        )

    def _devices(self) -> dict[str, Any]:
        rows = self._rows("TARGET_INFO_GPU", "id", "cuDevice", "clockRate", "memoryBandwidth", *OF_GPU)
        made: dict[str, Any] = {
            name: rows.count(column, 63 if name == "global_memory_size" else 32) for column, name in OF_GPU.items()
        }
        # Hz and bytes/s; the number of a device in CUDA is not that of the machine's GPU.
        made["core_clock_rate"] = np.minimum(rows.count("clockRate", 63) // 1000, 2**32 - 1)
        made["global_memory_bandwidth"] = rows.count("memoryBandwidth", 63) // 1000
        made["device"] = np.where(rows.has("cuDevice"), rows.count("cuDevice"), rows.count("id"))
        names = self._database.texts("TARGET_INFO_GPU", "name") or [""] * len(rows)
        made["name"] = np.array([self._strings.code(name) for name in names], np.int64)
        return rows.kept(made)

    def _nvtx(self, making: Making) -> None:
        table = "NVTX_EVENTS"
        rows = self._rows(table, *SPAN, "eventType", "globalTid", "textId", "domainId", "category", "uint64Value")
        kind, numbers = rows.number("eventType"), rows.number("domainId")
        text = self._texts.codes(rows.number("textId"))
        if own := self._database.texts(table, "text"):
            codes = {name: self._strings.code(name) for name in set(own)}
            text = np.where(text == 0, np.array([codes[name] for name in own], np.int64), text)
        is_domain = kind == _DOMAIN
        named = dict(zip(numbers[is_domain].tolist(), text[is_domain].tolist(), strict=True))
        used, which = np.unique(numbers, return_inverse=True)
        domain = np.array([named.get(number, 0) for number in used.tolist()], np.int64)[which.reshape(-1)]
        parts = {
            wanted: self._scopes(rows.where(mask), text[mask], domain[mask], has_end=wanted != _MARK)
            for wanted in (_PUSH_POP, _START_END, _MARK)
            for mask in [kind == wanted]
        }
        making.regions = parts[_PUSH_POP]
        of_operators = ("scope", "sequence")
        markers = {
            name: np.concatenate([parts[k][name] for k in (_START_END, _MARK)])
            for name in parts[_MARK]
            if name not in of_operators
        }
        category = self._strings.code("nvtx")
        making.tables["markers"] = {**markers, "category": np.full(len(markers["start"]), category)}
        known = np.isin(kind, (*parts, _DOMAIN))
        self._left_out.not_kept(f"{table} of other kinds", int((~known).sum()))

    @staticmethod
    def _scopes(rows: TableRows, text: Int64, domain: Int64, *, has_end: bool) -> dict[str, Int64]:
        start = rows.time("start")
        is_open = ~rows.has("end") & has_end
        end = np.where(rows.has("end") & has_end, rows.number("end"), start)
        rows.refuse((end < start) | (end >= LONGEST), "its end lies before its start, or nowhere")
        return rows.kept(
            {
                "start": start,
                "end": end,
                "thread": rows.number("globalTid") & _LOW24,
                "name": text,
                "domain": domain,
                "is_open": is_open.astype(np.int64),
                # Our own operators have these where NVTX has a category and a payload.
                "scope": rows.number("category") & 0xFF,
                "sequence": rows.number("uint64Value") & LONGEST - 1,
            }
        )

    def _origin(self) -> dict[str, Any]:
        table = "META_DATA_EXPORT"
        pairs = zip(self._database.texts(table, "name"), self._database.texts(table, "value"), strict=False)
        version = next((value for name, value in pairs if name == "EXPORT_SCHEMA_VERSION"), "")
        return {"tool": "nsys", **({"schema": version[:100]} if version else {})}

    def _session_start(self) -> int | None:
        """Unix time of the time 0, ns; None: not known."""
        rows = self._rows("TARGET_INFO_SESSION_START_TIME", "utcEpochNs")
        begun = rows.number("utcEpochNs")
        return int(begun[0]) if len(begun) and 0 < begun[0] < LONGEST else None


_LOW24 = 0xFFFFFF


def _process(global_id: Int64) -> Int64:
    return (global_id >> 24) & _LOW24


def _thread(rows: TableRows) -> dict[str, Int64]:
    number = rows.number("globalTid")
    return {"process": _process(number), "thread": number & _LOW24}


def _memory_kind(rows: TableRows, column: str) -> Int64:
    """0 pageable, 1 pinned, 2 device, ...: one less than CUPTI's, where 0 is unknown."""
    kind = rows.number(column, -1)
    return np.where((kind >= 0) & (kind < 7), kind + 1, 0)
