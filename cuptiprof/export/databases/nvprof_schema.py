"""The tables of nvprof that we write: CUPTI's activity records of CUDA 9 to 11, a row a record.

Sources: ``torch.autograd.profiler.parse_nvprof_trace`` and the ``CUpti_Activity*`` structs, whose fields the columns are.
"""

from __future__ import annotations

KIND = "CUPTI_ACTIVITY_KIND_"
OWN = "CUPTIPROF_METADATA"
"""Ours, for which nvprof has no place: whether the run is simulated, what was lost."""

_INTEGERS = {
    "Version": "version",
    KIND + "CONCURRENT_KERNEL": "cacheConfig:BLOB sharedMemoryConfig registersPerThread partitionedGlobalCacheRequested "
    "partitionedGlobalCacheExecuted start end completed deviceId contextId streamId gridX gridY gridZ blockX blockY blockZ staticSharedMemory "
    "dynamicSharedMemory localMemoryPerThread localMemoryTotal correlationId gridId name",
    KIND + "MEMCPY": "copyKind srcKind dstKind flags bytes start end deviceId contextId streamId correlationId runtimeCorrelationId",
    KIND + "MEMCPY2": "copyKind srcKind dstKind flags bytes start end deviceId contextId streamId srcDeviceId srcContextId dstDeviceId "
    "dstContextId correlationId",
    KIND + "MEMSET": "value start end deviceId contextId streamId correlationId flags memoryKind bytes",
    KIND + "RUNTIME": "cbid start end processId threadId correlationId returnValue",
    KIND + "DRIVER": "cbid start end processId threadId correlationId returnValue",
    KIND + "MARKER": "flags timestamp id objectKind objectId:BLOB name domain",
    KIND + "SYNCHRONIZATION": "type start end correlationId contextId streamId cudaEventId",
    KIND + "OVERHEAD": "overheadKind objectKind objectId:BLOB start end",
    KIND + "CONTEXT": "contextId deviceId computeApiKind nullStreamId",
    KIND + "DEVICE": "flags globalMemoryBandwidth globalMemorySize constantMemorySize l2CacheSize numThreadsPerWarp coreClockRate "
    "numMemcpyEngines numMultiprocessors maxIPC maxWarpsPerMultiprocessor maxBlocksPerMultiprocessor maxSharedMemoryPerMultiprocessor "
    "maxRegistersPerMultiprocessor maxRegistersPerBlock maxSharedMemoryPerBlock maxThreadsPerBlock maxBlockDimX maxBlockDimY maxBlockDimZ "
    "maxGridDimX maxGridDimY maxGridDimZ computeCapabilityMajor computeCapabilityMinor eccEnabled id name",
}  # fmt: skip


def _columns(names: str) -> str:
    typed = (name.partition(":") for name in names.split())
    return ", ".join(["_id_ INTEGER PRIMARY KEY AUTOINCREMENT", *(f"{name} {kind or 'INTEGER'}" for name, _, kind in typed)])  # fmt: skip


TABLES = {
    "StringTable": "_id_ INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT NOT NULL",
    OWN: "name TEXT NOT NULL, value TEXT",
    **{table: _columns(names) for table, names in _INTEGERS.items()},
}
"""Table -> its columns. All are made, whether there are rows or not, as nvprof makes them."""

VERSION = 11
"""of the layout, as nvprof of CUDA 9 to 11 says it"""
LAUNCH = 211
"""callback ID of ``cudaLaunchKernel``: the one launch that PyTorch's reader knows"""
GRAPH_LAUNCH = 514
"""callback ID of the driver's ``cuGraphLaunch``"""
