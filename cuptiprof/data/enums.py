"""CUPTI's enumerations as people write them (values from cupti_activity.h)."""

from __future__ import annotations

MEMCPY_KINDS = {
    0: "Unknown", 1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD", 9: "HtoH",
    10: "PtoP",
}  # fmt: skip
MEMORY_KINDS = {
    0: "Unknown", 1: "Pageable", 2: "Pinned", 3: "Device", 4: "Array", 5: "Managed", 6: "Device Static",
    7: "Managed Static",
}  # fmt: skip
SYNC_KINDS = {0: "Unknown", 1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}
OVERHEAD_KINDS = {
    0: "Unknown", 1: "Driver Compiler", 1 << 16: "Buffer Flush", 2 << 16: "Instrumentation",
    3 << 16: "Resource", 4 << 16: "Runtime Triggered Module Loading", 5 << 16: "Lazy Function Loading",
    6 << 16: "Command Buffer Full", 7 << 16: "Activity Buffer Request", 8 << 16: "UVM Activity Init",
}  # fmt: skip


def code_of(names: dict[int, str], text: str) -> int:
    """The value whose name is `text`; 0 if there is none."""
    return next((value for value, name in names.items() if name == text), 0)
