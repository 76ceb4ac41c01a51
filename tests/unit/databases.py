"""Databases as Nsight Systems and nvprof write them, of rows that a test gives: tables and columns as documented, by version."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

PID = 4242
KIND = "CUPTI_ACTIVITY_KIND_"

_WORK = "start end deviceId contextId streamId correlationId globalPid"
_KERNEL = (
    f"{_WORK} demangledName shortName launchType cacheConfig registersPerThread gridX gridY gridZ blockX blockY blockZ staticSharedMemory "
    "dynamicSharedMemory localMemoryPerThread localMemoryTotal gridId sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig"
)
_NSYS = {
    KIND + "KERNEL": _KERNEL,
    KIND + "MEMCPY": f"{_WORK} bytes copyKind deprecatedSrcId srcKind dstKind srcDeviceId srcContextId dstDeviceId dstContextId graphNodeId",
    KIND + "MEMSET": f"{_WORK} value bytes graphNodeId memKind",
    KIND + "RUNTIME": "start end globalTid correlationId nameId returnValue callchainId",
    KIND + "SYNCHRONIZATION": f"{_WORK} syncType eventId",
    KIND + "CUDA_EVENT": "deviceId contextId streamId correlationId globalPid eventId",
    KIND + "GRAPH_TRACE": f"{_WORK} graphId graphExecId",
    "CUDA_GPU_MEMORY_USAGE_EVENTS": "start globalPid deviceId contextId address pc bytes memKind memoryOperationType correlationId streamId",
    "NVTX_EVENTS": "start end eventType rangeId category color text globalTid endGlobalTid textId domainId",
    "TARGET_INFO_GPU": "id name totalMemory smCount cuDevice computeMajor computeMinor maxThreadsPerBlock clockRate memoryBandwidth",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs utcTime localTime",
    "META_DATA_EXPORT": "name value",
    "OSRT_API": "start end globalTid nameId",
}  # fmt: skip
NSYS_VERSIONS = {
    "3.16.1": {
        **_NSYS,
        KIND + "KERNEL": f"{_KERNEL} greenContextId mangledName graphId clusterX clusterY clusterZ clusterSchedulingPolicy "
                         "maxPotentialClusterSize maxActiveClusters qmdLastCtaDone",
        KIND + "RUNTIME": "start end eventClass globalTid correlationId nameId returnValue callchainId",
    },
    "2.7.1": _NSYS,
    # The first that were documented: no graphs, names of NVTX ranges in place.
    "1.0": {
        KIND + "KERNEL": f"{_WORK} demangledName shortName registersPerThread gridX gridY gridZ blockX blockY blockZ staticSharedMemory dynamicSharedMemory",
        KIND + "MEMCPY": f"{_WORK} bytes copyKind srcKind dstKind",
        KIND + "MEMSET": f"{_WORK} value bytes",
        KIND + "RUNTIME": "start end globalTid correlationId nameId returnValue",
        "NVTX_EVENTS": "start end eventType text globalTid",
        "TARGET_INFO_GPU": "id name smCount",
    },
}  # fmt: skip
"""Schema version -> table -> its columns."""

_NVPROF_KERNEL = (
    "_id_ cacheConfig sharedMemoryConfig registersPerThread partitionedGlobalCacheRequested partitionedGlobalCacheExecuted start end completed "
    "deviceId contextId streamId gridX gridY gridZ blockX blockY blockZ staticSharedMemory dynamicSharedMemory localMemoryPerThread "
    "localMemoryTotal correlationId gridId name"
)
NVPROF = {
    KIND + "CONCURRENT_KERNEL": _NVPROF_KERNEL,
    KIND + "KERNEL": _NVPROF_KERNEL,
    KIND + "MEMCPY": "_id_ copyKind srcKind dstKind flags bytes start end deviceId contextId streamId correlationId runtimeCorrelationId",
    KIND + "MEMCPY2": "_id_ copyKind srcKind dstKind flags bytes start end deviceId contextId streamId srcDeviceId srcContextId dstDeviceId dstContextId correlationId",
    KIND + "MEMSET": "_id_ value bytes start end deviceId contextId streamId correlationId flags memoryKind",
    KIND + "RUNTIME": "_id_ cbid start end processId threadId correlationId returnValue",
    KIND + "DRIVER": "_id_ cbid start end processId threadId correlationId returnValue",
    KIND + "MARKER": "_id_ flags timestamp id objectKind objectId name domain",
    KIND + "DEVICE": "_id_ globalMemorySize numMultiprocessors computeCapabilityMajor computeCapabilityMinor coreClockRate id name",
    KIND + "CONTEXT": "_id_ contextId deviceId computeApiKind nullStreamId",
    KIND + "OVERHEAD": "_id_ overheadKind objectKind objectId start end",
    KIND + "METRIC": "_id_ id value correlationId flags",
}  # fmt: skip
_TEXTS = {"NVTX_EVENTS": ("text",), "TARGET_INFO_GPU": ("name",), "META_DATA_EXPORT": ("name", "value")}


def global_id(thread: int = 0, process: int = PID) -> int:
    """globalTid; of thread 0 globalPid."""
    return 1 << 56 | process << 24 | thread


def object_id(thread: int, process: int = PID) -> bytes:
    """The bytes of a CUpti_ActivityObjectKindId."""
    return struct.pack("<III", process, thread, 0)


class DatabaseMaker:
    """A database in the making; texts get numbers as they come."""

    def __init__(self, path: Path, tables: Mapping[str, str], texts: str = "StringIds") -> None:
        self.path, self._tables, self._texts = path, tables, texts
        self.connection = sqlite3.connect(path)
        self._numbers: dict[str, int] = {}
        key = "id INTEGER PRIMARY KEY" if texts == "StringIds" else "_id_ INTEGER PRIMARY KEY AUTOINCREMENT"
        self.connection.execute(f"CREATE TABLE {texts} ({key}, value TEXT NOT NULL)")
        self._made: set[str] = set()

    def text(self, value: str | bytes) -> int:
        """Number of a text."""
        key = repr(value)
        if key not in self._numbers:
            self._numbers[key] = len(self._numbers) + 1
            shown = "CAST(? AS TEXT)" if isinstance(value, bytes) else "?"
            self.connection.execute(f"INSERT INTO {self._texts} VALUES (?, {shown})", (self._numbers[key], value))
        return self._numbers[key]

    def add(self, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Rows of a table, which is made with the first; what a version has no column for is not written, the rest is 0 or NULL."""
        columns = self._tables.get(table)
        if columns is None:
            return
        names = columns.split()
        if table not in self._made:
            self._made.add(table)
            types = ", ".join(f'"{n}" {"TEXT" if n in _TEXTS.get(table, ()) else "INTEGER"}' for n in names)
            self.connection.execute(f"CREATE TABLE {table} ({types})")
        marks = ", ".join("?" * len(names))
        values = [[row.get(n, None if n in ("end", "textId", "text", "_id_") else 0) for n in names] for row in rows]
        self.connection.executemany(f"INSERT INTO {table} VALUES ({marks})", values)

    def done(self) -> Path:
        """Writes it."""
        self.connection.commit()
        self.connection.close()
        return self.path
