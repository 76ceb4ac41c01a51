"""Memory that is asked for in ways that CUPTI's documentation does not mention: which records there are of it."""

from __future__ import annotations

import ctypes
from typing import Any

import cuptiprof
from benchmarks.gpu_work import Work
from cuptiprof.data.result import Result
from cuptiprof.device.driver import Driver, DriverError

BYTES = 64 << 20
TOO_MANY = 1 << 50


def _rows(result: Result) -> list[dict[str, Any]]:
    memory = result.memory
    columns = ("operation", "memory_kind", "bytes", "region")
    return [{c: memory[c][i] for c in columns} for i in range(len(memory))]


def expandable_segments(work: Work) -> dict[str, Any]:
    """Torch's allocator with expandable segments (cuMemCreate, cuMemMap): are there memory records of what it asks the driver for?

    Assumed: none; nobody says whether CUPTI records them.
    """
    if work.device != "cuda":
        return {"not applicable": "the stand-in has no virtual memory"}
    import torch

    torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    with cuptiprof.profile(activities=["kernel", "memory", "driver"]) as prof:
        with cuptiprof.region("grow"):
            x = torch.empty(BYTES, dtype=torch.uint8, device="cuda")
        del x
        torch.cuda.empty_cache()
    result = prof.result()
    calls = sorted({n for n in result.api_calls["name"] if n.startswith(("cuMem", "cudaMem", "cudaMalloc"))})
    rows = _rows(result)
    return {"calls": calls, "records": rows[:20], "as assumed": not any(r["bytes"] >= BYTES for r in rows)}


def failed_allocation(work: Work) -> dict[str, Any]:
    """Does an allocation that the driver refuses leave a memory record?

    Assumed: no; what was held at that moment is reported without it.
    """
    if work.device != "cuda":
        return {"not applicable": "the stand-in refuses no allocation"}
    driver = Driver()
    address = ctypes.c_uint64()
    refused = ""
    with cuptiprof.profile(activities=["kernel", "memory"]) as prof, cuptiprof.region("too much"):
        try:
            driver.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(TOO_MANY))
        except DriverError as e:
            refused = str(e)
    rows = _rows(prof.result())
    return {"refused": refused, "records": rows, "as assumed": bool(refused) and not rows}


PROBES = [expandable_segments, failed_allocation]
