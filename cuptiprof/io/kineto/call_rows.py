"""CUDA, HIP and other runtime and driver calls of a trace, synchronisations, and the profiler's own overhead."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuptiprof.data import enums
from cuptiprof.io.kineto.event_rows import EventRows
from cuptiprof.io.kineto.trace_columns import Int64

RUNTIMES = (
    "cuda_runtime",
    "runtime",
    "xpu_runtime",
    "mtia_runtime",
    "glow_runtime",
    "hpu_runtime",
    "privateuse1_runtime",
)
DRIVERS = ("cuda_driver", "xpu_driver", "privateuse1_driver")

_NONE = 0xFFFFFFFF
_WAITS = {"event_wait": "Stream Wait Event"}


def calls(rows: EventRows) -> dict[str, Any]:
    """Columns of ``api_calls``; ROCm has the number of a function under another name (cid)."""
    cbid = np.where(rows.columns.has("cbid", rows.event), rows.count("cbid"), rows.count("cid"))
    kept = rows.kept(
        {
            "name": rows.text("name"),
            "cbid": cbid,
            "correlation_id": rows.count("correlation"),
            "process": rows.low32("pid"),
            "thread": rows.low32("tid"),
            "domain": rows.columns.is_category(rows.event, DRIVERS.__contains__).astype(np.int64),
        }
    )
    return {**kept, "start": rows.start, "end": rows.end}


def synchronizations(rows: EventRows) -> tuple[dict[str, Any], dict[str, Any]]:
    """Columns of ``synchronizations``, and of ``cuda_events`` the records that they waited for, each once for every wait; an MTIA's waits have
    their name for a kind.

    A trace names a record by the correlation ID of its call, which joins the two (``event_sync_id``).
    """
    named = rows.token("cuda_sync_kind") >= 0
    kind = np.where(named, rows.of_text("cuda_sync_kind", _sync_kind), rows.of_text("name", _sync_kind))
    stream: Int64 = np.where(rows.columns.has("stream", rows.event), rows.low32("stream"), _NONE)
    # Whoever waited for no event has -1, or no such field.
    event, record = (rows.number(field, -1) for field in ("wait_on_cuda_event_id", "wait_on_cuda_event_record_corr_id"))
    event = np.where((event >= 0) & (event < _NONE), event, _NONE)
    kept = rows.kept(
        {
            "type": kind,
            "context": rows.low32("context"),
            "correlation_id": rows.count("correlation"),
            "stream": stream,
            "event": event,
            "event_sync_id": np.where((record > 0) & (record < _NONE), record, 0),
            "device": rows.low32("device"),
            "wait_on_stream": rows.low32("wait_on_stream"),
        }
    )
    device, waited_for = kept.pop("device"), kept.pop("wait_on_stream")
    known = kept["event_sync_id"] != 0
    records = {
        "event_sync_id": kept["event_sync_id"][known],
        "correlation_id": kept["event_sync_id"][known],
        "event": kept["event"][known],
        "context": kept["context"][known],
        "device": device[known],
        "stream": waited_for[known],
    }
    return {**kept, "start": rows.start, "end": rows.end}, records


def overhead(rows: EventRows) -> dict[str, Any]:
    """Columns of ``overhead``."""
    kept = rows.kept({"kind": rows.of_text("name", _overhead_kind)})
    return {**kept, "start": rows.start, "end": rows.end}


def _sync_kind(text: Any) -> int:
    return enums.code_of(enums.SYNC_KINDS, _WAITS.get(str(text), str(text)))


def _overhead_kind(text: Any) -> int:
    return enums.code_of(enums.OVERHEAD_KINDS, str(text))
