"""The tables of Nsight Systems that we write, in the order and with the types of its exporter (schema 3.16, nsys 2024.6).

Source: "SQLite Schema Reference" and "SQLite Schema Event Values" of Nsight Systems' user guide.
"""

from __future__ import annotations

SCHEMA_VERSION = "3.16.1"
KIND = "CUPTI_ACTIVITY_KIND_"

_PLACE = "deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL"
_SPAN = "start INTEGER NOT NULL, end INTEGER NOT NULL"
_CAUSE = "correlationId INTEGER, globalPid INTEGER"
_DEVICE_LIMITS = (
    "l2CacheSize", "totalMemory", "memoryBandwidth", "clockRate", "smCount", "pwGpuId", "uuid TEXT", "luid", "chipName TEXT", "cuDevice",
    "ctxswDevPath TEXT", "ctrlDevPath TEXT", "revision", "nodeMask", "constantMemory", "maxIPC", "maxRegistersPerBlock", "maxShmemPerBlock",
    "maxShmemPerBlockOptin", "maxShmemPerSm", "maxRegistersPerSm", "threadsPerWarp", "asyncEngines", "maxWarpsPerSm", "maxBlocksPerSm",
    "maxThreadsPerBlock", "maxBlockDimX", "maxBlockDimY", "maxBlockDimZ", "maxGridDimX", "maxGridDimY", "maxGridDimZ", "computeMajor",
    "computeMinor", "smMajor", "smMinor",
)  # fmt: skip

TABLES = {
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
    "ThreadNames": "nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER",
    "PROCESSES": "globalPid INTEGER, pid INTEGER, name TEXT",
    "ANALYSIS_DETAILS": "globalVid INTEGER NOT NULL, duration INTEGER NOT NULL, startTime INTEGER NOT NULL, stopTime INTEGER NOT NULL",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT",
    "TARGET_INFO_GPU": "vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT, isDiscrete INTEGER, "
    + ", ".join(column if " " in column else f"{column} INTEGER" for column in _DEVICE_LIMITS),
    "TARGET_INFO_CUDA_DEVICE": "gpuId INTEGER, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL, uuid TEXT, numMultiprocessors INTEGER",
    "TARGET_INFO_CUDA_CONTEXT_INFO": "nullStreamId INTEGER NOT NULL, hwId INTEGER NOT NULL, vmId INTEGER NOT NULL, processId INTEGER NOT NULL, "
    "deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, parentContextId INTEGER, isGreenContext INTEGER",
    "TARGET_INFO_CUDA_STREAM": "streamId INTEGER NOT NULL, hwId INTEGER NOT NULL, vmId INTEGER NOT NULL, processId INTEGER NOT NULL, "
    "contextId INTEGER NOT NULL, priority INTEGER NOT NULL, flag INTEGER NOT NULL",
    "TARGET_INFO_GPU_METRICS": "typeId INTEGER NOT NULL, sourceId INTEGER NOT NULL, typeName TEXT NOT NULL, metricId INTEGER NOT NULL, metricName TEXT NOT NULL",
    "META_DATA_CAPTURE": "name TEXT NOT NULL, value TEXT",
    "META_DATA_EXPORT": "name TEXT NOT NULL, value TEXT",
    KIND + "KERNEL": f"{_SPAN}, {_PLACE}, {_CAUSE}, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, "
    "launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, "
    "gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL, "
    "dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL, "
    "sharedMemoryExecuted INTEGER, graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER, graphId INTEGER, clusterX INTEGER, clusterY INTEGER, "
    "clusterZ INTEGER, clusterSchedulingPolicy INTEGER, maxPotentialClusterSize INTEGER, maxActiveClusters INTEGER",
    KIND + "MEMCPY": f"{_SPAN}, {_PLACE}, {_CAUSE}, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, deprecatedSrcId INTEGER, srcKind INTEGER, "
    "dstKind INTEGER, srcDeviceId INTEGER, srcContextId INTEGER, dstDeviceId INTEGER, dstContextId INTEGER, migrationCause INTEGER, "
    "graphNodeId INTEGER, virtualAddress INTEGER",
    KIND + "MEMSET": f"{_SPAN}, {_PLACE}, {_CAUSE}, value INTEGER NOT NULL, bytes INTEGER NOT NULL, graphNodeId INTEGER, memKind INTEGER",
    KIND + "RUNTIME": f"{_SPAN}, eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, "
    "returnValue INTEGER NOT NULL, callchainId INTEGER",
    KIND + "SYNCHRONIZATION": f"{_SPAN}, {_PLACE}, {_CAUSE}, syncType INTEGER NOT NULL, eventId INTEGER NOT NULL",
    KIND + "CUDA_EVENT": "deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, "
    "correlationId INTEGER, globalPid INTEGER, eventId INTEGER NOT NULL",
    KIND + "GRAPH_TRACE": f"{_SPAN}, {_PLACE}, {_CAUSE}, graphId INTEGER NOT NULL, graphExecId INTEGER NOT NULL",
    "CUDA_GPU_MEMORY_USAGE_EVENTS": "start INTEGER NOT NULL, globalPid INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, "
    "address INTEGER NOT NULL, pc INTEGER NOT NULL, bytes INTEGER NOT NULL, memKind INTEGER NOT NULL, memoryOperationType INTEGER NOT NULL, "
    "name TEXT, correlationId INTEGER, streamId INTEGER, localMemoryPoolAddress INTEGER, localMemoryPoolReleaseThreshold INTEGER, "
    "localMemoryPoolSize INTEGER, localMemoryPoolUtilizedSize INTEGER, importedMemoryPoolAddress INTEGER, importedMemoryPoolProcessId INTEGER",
    "PROFILER_OVERHEAD": f"{_SPAN}, globalTid INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL",
    "NVTX_EVENTS": "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER, color INTEGER, text TEXT, "
    "globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER, int64Value INTEGER, doubleValue REAL, "
    "uint32Value INTEGER, int32Value INTEGER, floatValue REAL, jsonTextId INTEGER, jsonText TEXT, binaryData TEXT",
    "GPU_METRICS": "timestamp INTEGER NOT NULL, typeId INTEGER NOT NULL, metricId INTEGER NOT NULL, value INTEGER",
}  # fmt: skip
"""Table -> its columns. Those of a kind that the run has no rows of are not made, as nsys makes none."""

ALWAYS = ("StringIds", "ThreadNames", "PROCESSES", "ANALYSIS_DETAILS", "TARGET_INFO_SESSION_START_TIME", "TARGET_INFO_GPU", "META_DATA_CAPTURE", "META_DATA_EXPORT")  # fmt: skip


def _named(prefix: str, *rows: tuple[str, str]) -> dict[int, tuple[str, str]]:
    return {i: (prefix + name, label) for i, (name, label) in enumerate(rows)}


ENUMS: dict[str, dict[int, tuple[str, str]]] = {
    "ENUM_CUDA_MEMCPY_OPER": _named(
        "CUDA_MEMCPY_KIND_",
        ("UNKNOWN", "Unknown"), ("HTOD", "Host-to-Device"), ("DTOH", "Device-to-Host"), ("HTOA", "Host-to-Array"), ("ATOH", "Array-to-Host"),
        ("ATOA", "Array-to-Array"), ("ATOD", "Array-to-Device"), ("DTOA", "Device-to-Array"), ("DTOD", "Device-to-Device"),
        ("HTOH", "Host-to-Host"), ("PTOP", "Peer-to-Peer"), ("UVM_HTOD", "Unified Host-to-Device"), ("UVM_DTOH", "Unified Device-to-Host"),
        ("UVM_DTOD", "Unified Device-to-Device"),
    ),
    "ENUM_CUDA_MEM_KIND": _named(
        "CUDA_MEMOPR_MEMORY_KIND_",
        ("PAGEABLE", "Pageable"), ("PINNED", "Pinned"), ("DEVICE", "Device"), ("ARRAY", "Array"), ("MANAGED", "Managed"),
        ("DEVICE_STATIC", "Device Static"), ("MANAGED_STATIC", "Managed Static"), ("UNKNOWN", "Unknown"),
    ),
    "ENUM_CUDA_DEV_MEM_EVENT_OPER": _named("CUDA_DEV_MEM_EVENT_OPR_", ("ALLOCATION", "Allocation"), ("DEALLOCATION", "Deallocation")),
    "ENUM_CUDA_KERNEL_LAUNCH_TYPE": _named(
        "CUDA_KERNEL_LAUNCH_TYPE_",
        ("UNKNOWN", "Unknown"), ("REGULAR", "Regular"), ("COOPERATIVE_SINGLE_DEVICE", "Coop Single Device"),
        ("COOPERATIVE_MULTI_DEVICE", "Coop Multi Device"),
    ),
    "ENUM_CUPTI_SYNC_TYPE": _named(
        "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_",
        ("UNKNOWN", "Unknown"), ("EVENT_SYNCHRONIZE", "Event sync"), ("STREAM_WAIT_EVENT", "Stream wait sync"),
        ("STREAM_SYNCHRONIZE", "Stream sync"), ("CONTEXT_SYNCHRONIZE", "Context sync"),
    ),
    "ENUM_CUPTI_STREAM_TYPE": _named(
        "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_",
        ("UNKNOWN", "Unknown"), ("DEFAULT", "Default"), ("NON_BLOCKING", "Non-blocking"), ("NULL", "Null"), ("MASK", "Mask"),
    ),
    "ENUM_NSYS_EVENT_CLASS": {
        0: ("TRACE_PROCESS_EVENT_CUDA_RUNTIME", "CUDA runtime"),
        1: ("TRACE_PROCESS_EVENT_CUDA_DRIVER", "CUDA driver"),
    },
    "ENUM_NSYS_EVENT_TYPE": {
        34: ("NvtxMark", "NvtxMark"),
        59: ("NvtxPushPopRange", "NvtxPushPopRange"),
        60: ("NvtxStartEndRange", "NvtxStartEndRange"),
        75: ("NvtxDomainCreate", "NvtxDomainCreate"),
    },
}  # fmt: skip
"""Table of an enumeration -> number -> name and label."""

MEMORY_KIND_UNKNOWN = 7
LARGEST_LAUNCH_TYPE = 2
"""of CUPTI's, whose numbers are one less; what is beyond (a launch from the device) is unknown to nsys"""
