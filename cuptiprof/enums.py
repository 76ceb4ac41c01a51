"""CUPTI's enumerations as they appear in the tables, with the words that nvprof and Kineto use for them."""

from __future__ import annotations

# CUpti_ActivityMemcpyKind
MEMCPY_KINDS = ("Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP")

# CUpti_ActivityMemoryKind
MEMORY_KINDS = (
    "Unknown",
    "Pageable",
    "Pinned",
    "Device",
    "Array",
    "Managed",
    "Device Static",
    "Managed Static",
)

# CUpti_ActivitySynchronizationType
SYNCHRONIZATION_TYPES = ("Unknown", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync")

# CUpti_ActivityOverheadKind
OVERHEAD_KINDS = {
    0: "Unknown",
    1: "Driver Compiler",
    1 << 16: "Buffer Flush",
    2 << 16: "Instrumentation",
    3 << 16: "Resource",
    4 << 16: "Runtime Triggered Module Loading",
    5 << 16: "Lazy Function Loading",
    6 << 16: "Command Buffer Full",
    7 << 16: "Activity Buffer Request",
    8 << 16: "UVM Activity Init",
}

# CUpti_ChannelType
CHANNEL_TYPES = ("INVALID", "COMPUTE", "ASYNC_MEMCPY", "DECOMP")

NO_ID = 0xFFFFFFFF  # a stream or event that is none


def word(names: tuple[str, ...], value: int) -> str:
    """Name of an enumerator; values from a newer CUPTI keep their number."""
    return names[value] if 0 <= value < len(names) else f"Unknown {value}"
