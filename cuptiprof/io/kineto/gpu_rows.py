"""Kernels, copies and sets of a trace, and where they were launched as far as the file says it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from cuptiprof.data import enums
from cuptiprof.data.codes import distinct_rows, first_rows
from cuptiprof.io.kineto.event_rows import EventRows
from cuptiprof.io.kineto.trace_columns import Int64, TraceColumns
from cuptiprof.io.kineto.trace_values import clamped, number

_MEMCPY = re.compile(r"(?:Memcpy|Copy)\s*(\w+)(?: \((.+?) -> (.+?)\))?$")
_CARVEOUT_NOT_ASKED_FOR = 255


@dataclass
class GpuWork:
    """Rows of a table of GPU work.

    Attributes:
        columns: of the table, by name.
        external: External id of each, modulo 2**32.
        configs: of kernels: columns of ``launch_configs``.
    """

    columns: dict[str, Any]
    external: Int64
    configs: dict[str, Any] = field(default_factory=dict)

    @property
    def correlation(self) -> Int64:
        """Correlation ID of each; 0: none."""
        return np.asarray(self.columns["correlation_id"], np.int64)


ON_MTIA = "mtia_ccp_events"
"""What an MTIA did: copies, waits of a stream for another, and kernels."""
_COPY, _WAIT, _MARK = "dma_request", "event_wait", "event_record"
_DIRECTIONS = {"HOST_TO_DEVICE": "HtoD", "DEVICE_TO_HOST": "DtoH", "DEVICE_TO_DEVICE": "DtoD"}


class DeviceEvents(NamedTuple):
    """Events by what they are: numbers of kernels, copies, waits and marks in streams, each ascending."""

    kernels: Int64
    copies: Int64
    waits: Int64
    marks: Int64

    @classmethod
    def of(cls, columns: TraceColumns) -> DeviceEvents:
        """Of all devices."""
        events = columns.rows((ON_MTIA,))
        places = {_COPY: 1, _WAIT: 2, _MARK: 3}
        kind = columns.mapped(
            columns.tokens("name", events), lambda token: places.get(str(columns.value(token)), 0), np.int64
        )
        of_mtia = [events[kind == i] for i in range(4)]
        ran, copied = columns.rows(("kernel",)), columns.rows(("gpu_memcpy",))
        return cls(np.sort(np.r_[ran, of_mtia[0]]), np.sort(np.r_[copied, of_mtia[1]]), of_mtia[2], of_mtia[3])


def kernels(rows: EventRows, base: int, launches: Int64) -> GpuWork:
    """Kernels; `base` is the Unix time of the file's time 0, ns, `launches` are the events of calls: ROCm has a kernel's configuration
    there."""
    rows.look_at(_configured_by(rows, launches))
    grid, block = _three(rows, "grid"), _three(rows, "block")
    shared = rows.count("shared memory", 31)
    rows.look_at(rows.event)
    sizes = [*grid, *block, rows.count("registers per thread", 16), shared]
    queued = np.maximum(rows.count("queued", 63) - base, 0)
    made = {
        **_place(rows),
        "name": rows.text("name"),
        "queued": queued,
        "graph_id": rows.count("graph id"),
        "graph_node_id": rows.count("graph node id", 64),
    }
    kept = rows.kept({**made, "external": rows.low32("External id"), **{str(i): size for i, size in enumerate(sizes)}})
    found, which = distinct_rows(*(kept.pop(str(i)) for i in range(len(sizes))))
    # Configurations in the order in which they come.
    first = first_rows(which, len(found))
    order = np.argsort(first)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    names = (
        *("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"),
        *("registers_per_thread", "static_shared_memory"),
    )
    configs = {name: found[order, i] for i, name in enumerate(names)}
    configs["shared_memory_carveout"] = np.full(len(found), _CARVEOUT_NOT_ASKED_FOR)
    external = kept.pop("external")
    return GpuWork({**kept, **_times(rows), "config": place[which] if len(which) else which}, external, configs)


def copies(rows: EventRows) -> GpuWork:
    """Copies; kinds of copies and memories are in their names."""
    place = _place(rows)
    kinds = [rows.of_text("name", partial(_copy_kind, part)) for part in range(3)]
    to_device = rows.count("toDevice", instead="device")
    from_device = rows.count("fromDevice", instead="device")
    is_peer = rows.columns.has("toDevice", rows.event)
    has_device = rows.columns.has("device", rows.event)
    direction = rows.of_text("direction", _direction)
    kept = rows.kept(
        {
            **place,
            "bytes": rows.count("bytes", 63, instead="size"),
            "copy_kind": np.where(direction > 0, direction, kinds[0]),
            "src_kind": kinds[1],
            "dst_kind": kinds[2],
            "src_device": np.where(
                has_device | rows.columns.has("fromDevice", rows.event), from_device, place["device"]
            ),
            "dst_device": np.where(has_device | is_peer, to_device, place["device"]),
            "src_context": place["context"],
            "dst_context": place["context"],
            "is_peer": is_peer.astype(np.int64),
            "bandwidth": rows.of_text("memory bandwidth (GB/s)", _bandwidth, np.float64),
            "external": rows.low32("External id"),
        }
    )
    external = kept.pop("external")
    return GpuWork({**kept, **_times(rows)}, external)


def sets(rows: EventRows) -> GpuWork:
    """Memory sets; the kind of memory is in their names."""
    kept = rows.kept(
        {
            **_place(rows),
            "bytes": rows.count("bytes", 63),
            "memory_kind": rows.of_text("name", _set_kind),
            "bandwidth": rows.of_text("memory bandwidth (GB/s)", _bandwidth, np.float64),
            "external": rows.low32("External id"),
        }
    )
    external = kept.pop("external")
    return GpuWork({**kept, **_times(rows)}, external)


def _configured_by(rows: EventRows, launches: Int64) -> Int64:
    """Event that says how each was launched: its own, or that of the call with its correlation ID."""
    lacking = np.flatnonzero(~rows.columns.has("grid", rows.event))
    if not len(lacking) or not len(launches):
        return rows.event
    calls = launches[rows.columns.has("grid", launches)]
    keys = rows.columns.numbers("correlation", calls)
    order = np.argsort(keys, kind="stable")
    wanted = rows.columns.numbers("correlation", rows.event[lacking])
    at = np.searchsorted(keys[order], wanted, side="right") - 1
    out: Int64 = rows.event.copy()
    if len(calls):
        found = (at >= 0) & (keys[order[np.maximum(at, 0)]] == wanted) & (wanted != 0)
        out[lacking[found]] = calls[order[at[found]]]
    return out


def _times(rows: EventRows) -> dict[str, Int64]:
    return {"start": rows.start, "end": rows.end}


def _place(rows: EventRows) -> dict[str, Int64]:
    return {
        "device": rows.count("device", instead="pid"),
        "context": rows.count("context"),
        "stream": rows.count("stream", instead="tid"),
        "correlation_id": rows.count("correlation"),
    }


def _three(rows: EventRows, name: str) -> list[Int64]:
    """Three sizes out of a list, 1 where there are none."""
    found = rows.of_text(name, _sizes).reshape(-1, 3)
    return [rows.limited(found[:, i], 31, name) for i in range(3)]


def _sizes(value: Any) -> tuple[int, ...]:
    given = [clamped(number(size)) for size in value[:3]] if isinstance(value, list) else []
    return (*given, *(1,) * (3 - len(given)))


def _copy_kind(part: int, name: Any) -> int:
    match = _MEMCPY.match(str(name))
    text = (match.group(part + 1) if match else None) or ""
    return enums.code_of(enums.MEMORY_KINDS if part else enums.MEMCPY_KINDS, text or ("" if part else "Unknown"))


def _direction(value: Any) -> int:
    return enums.code_of(enums.MEMCPY_KINDS, _DIRECTIONS.get(str(value), ""))


def _set_kind(name: Any) -> int:
    return enums.code_of(enums.MEMORY_KINDS, str(name).partition("(")[2].rstrip(")"))


def _bandwidth(value: Any) -> float:
    """GB/s as the file has it; 0 where it has none. Its times may be whole microseconds: this is not made from them."""
    try:
        given = float(value or 0)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return given if 0 <= given < 1e6 else 0.0
