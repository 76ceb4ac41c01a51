"""Reports of ``nsys stats`` as queries over the tables that they are documented to read, and functions that SQLite has not by itself.

The joins are those of NVIDIA's reports: a name is in ``StringIds``; a kernel belongs to the call with its correlation ID in the same process
(``globalPid`` is ``globalTid`` without its low 24 bits), and to the ranges of that call's thread that hold the whole call.
"""

from __future__ import annotations

import sqlite3
import statistics
from pathlib import Path
from typing import Any

KERNELS = """
    SELECT k.*, k.end - k.start AS duration, names.value AS name, short.value AS base, mangled.value AS mangled
    FROM CUPTI_ACTIVITY_KIND_KERNEL AS k
    JOIN StringIds AS names ON names.id = k.demangledName
    JOIN StringIds AS short ON short.id = k.shortName
    JOIN StringIds AS mangled ON mangled.id = k.mangledName
"""
CALLED = "JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS call ON call.correlationId = work.correlationId AND call.globalTid & ~0xFFFFFF = work.globalPid"
STATISTICS = "sum({0}) AS total, count(*) AS count, avg({0}) AS avg, median({0}) AS med, min({0}) AS min, max({0}) AS max, stdev({0}) AS stddev"
TIMES = STATISTICS.format("duration")
RANGES = """
    SELECT ranges.rowid AS id, ranges.*, coalesce(domains.text, '') || ':' || coalesce(names.value, ranges.text) AS name
    FROM NVTX_EVENTS AS ranges
    LEFT JOIN StringIds AS names ON names.id = ranges.textId
    LEFT JOIN NVTX_EVENTS AS domains
        ON domains.eventType = 75 AND domains.domainId = ranges.domainId AND domains.globalTid & ~0xFFFFFF = ranges.globalTid & ~0xFFFFFF
    WHERE ranges.eventType IN (59, 60) AND ranges.endGlobalTid IS NULL
"""
IN_RANGE = "JOIN ranges ON ranges.globalTid = call.globalTid AND ranges.start <= call.start AND ranges.end >= call.end"

QUERIES = {
    "cuda_gpu_kern_sum": f"SELECT name, {TIMES} FROM ({KERNELS}) GROUP BY name ORDER BY total DESC",
    "cuda_gpu_kern_sum:base": f"SELECT base AS name, {TIMES} FROM ({KERNELS}) GROUP BY base ORDER BY total DESC",
    "cuda_gpu_kern_sum:mangled": f"SELECT mangled AS name, {TIMES} FROM ({KERNELS}) GROUP BY mangled ORDER BY total DESC",
    "cuda_gpu_kern_gb_sum": f"SELECT name, gridX, gridY, gridZ, blockX, blockY, blockZ, {TIMES} FROM ({KERNELS}) "
    "GROUP BY name, gridX, gridY, gridZ, blockX, blockY, blockZ ORDER BY total DESC",
    "cuda_api_sum": f"SELECT names.value AS name, {TIMES} FROM (SELECT *, end - start AS duration FROM CUPTI_ACTIVITY_KIND_RUNTIME) AS call "
    "JOIN StringIds AS names ON names.id = call.nameId GROUP BY name ORDER BY total DESC",
    **{
        f"cuda_gpu_mem_{what}_sum": f"""
            WITH work AS (
                SELECT '[CUDA memcpy ' || kinds.label || ']' AS name, {size} AS amount
                FROM CUPTI_ACTIVITY_KIND_MEMCPY AS copy JOIN ENUM_CUDA_MEMCPY_OPER AS kinds ON kinds.id = copy.copyKind
                UNION ALL SELECT '[CUDA memset]', {size} FROM CUPTI_ACTIVITY_KIND_MEMSET)
            SELECT name, {STATISTICS.format("amount")} FROM work GROUP BY name ORDER BY total DESC"""
        for what, size in (("time", "end - start"), ("size", "bytes"))
    },
    "cuda_gpu_trace": f"""
        SELECT start, duration, correlationId, gridX, gridY, gridZ, blockX, blockY, blockZ, registersPerThread, staticSharedMemory,
               dynamicSharedMemory, bytes, source, destination, printf('%s (%d)', gpu.name, deviceId) AS device, contextId, streamId, work.name
        FROM (
            SELECT start, duration, correlationId, gridX, gridY, gridZ, blockX, blockY, blockZ, registersPerThread, staticSharedMemory,
                   dynamicSharedMemory, NULL AS bytes, NULL AS source, NULL AS destination, deviceId, contextId, streamId, name
            FROM ({KERNELS})
            UNION ALL
            SELECT start, end - start, correlationId, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, bytes, source.label,
                   destination.label, deviceId, contextId, streamId, '[CUDA memcpy ' || kinds.label || ']'
            FROM CUPTI_ACTIVITY_KIND_MEMCPY AS copy
            JOIN ENUM_CUDA_MEMCPY_OPER AS kinds ON kinds.id = copy.copyKind
            JOIN ENUM_CUDA_MEM_KIND AS source ON source.id = copy.srcKind
            JOIN ENUM_CUDA_MEM_KIND AS destination ON destination.id = copy.dstKind
            UNION ALL
            SELECT start, end - start, correlationId, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, bytes, kinds.label, NULL,
                   deviceId, contextId, streamId, '[CUDA memset]'
            FROM CUPTI_ACTIVITY_KIND_MEMSET AS work JOIN ENUM_CUDA_MEM_KIND AS kinds ON kinds.id = work.memKind
        ) AS work LEFT JOIN TARGET_INFO_GPU AS gpu ON gpu.id = work.deviceId ORDER BY start""",
    "cuda_kern_exec_sum": f"""
        SELECT work.name, names.value AS api, count(*) AS count, sum(call.end - call.start) AS api_time, sum(work.duration) AS kernel_time,
               sum(CASE WHEN work.start >= call.end THEN work.start - call.end END) AS queue_time
        FROM ({KERNELS}) AS work {CALLED} JOIN StringIds AS names ON names.id = call.nameId GROUP BY work.name, api ORDER BY kernel_time DESC""",
    "nvtx_gpu_proj_sum": f"""
        WITH ranges AS ({RANGES}), work AS (
            SELECT start, end, correlationId, globalPid FROM CUPTI_ACTIVITY_KIND_KERNEL
            UNION ALL SELECT start, end, correlationId, globalPid FROM CUPTI_ACTIVITY_KIND_MEMCPY
            UNION ALL SELECT start, end, correlationId, globalPid FROM CUPTI_ACTIVITY_KIND_MEMSET),
        projected AS (
            SELECT ranges.name, max(work.end) - min(work.start) AS duration, ranges.end - ranges.start AS host, count(*) AS operations
            FROM work {CALLED} {IN_RANGE} GROUP BY ranges.id)
        SELECT name, sum(host) AS host, sum(operations) AS operations, {TIMES} FROM projected GROUP BY name ORDER BY total DESC""",
    "nvtx_kern_sum": f"""
        WITH ranges AS ({RANGES})
        SELECT ranges.name AS range, work.name AS kernel, count(DISTINCT ranges.id) AS instances, count(*) AS kernels, sum(work.duration) AS total
        FROM ({KERNELS}) AS work {CALLED} {IN_RANGE} GROUP BY range, kernel ORDER BY range, total DESC""",
}  # fmt: skip


class _Values:
    def __init__(self) -> None:
        self.values: list[Any] = []

    def step(self, value: Any) -> None:
        if value is not None:
            self.values.append(value)


class _Median(_Values):
    def finalize(self) -> Any:
        return statistics.median(self.values) if self.values else None


class _Deviation(_Values):
    def finalize(self) -> float:
        return statistics.stdev(self.values) if len(self.values) > 1 else 0.0


def opened(path: Path) -> sqlite3.Connection:
    """The database, with ``median`` and ``stdev`` as nsys gives them to its reports; rows by name."""
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    connection.create_aggregate("median", 1, _Median)  # type: ignore[arg-type]
    connection.create_aggregate("stdev", 1, _Deviation)  # type: ignore[arg-type]
    return connection


def report(path: Path, name: str) -> list[sqlite3.Row]:
    """Rows of a report."""
    return opened(path).execute(QUERIES[name]).fetchall()
