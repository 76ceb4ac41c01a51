"""torch.profiler traces (Kineto's Chrome JSON) -> Result.

Times are microseconds with up to three decimals and up to 1.7e15 in size: more digits than a float64 has. They are read
as text and turned into integer ns.
"""

from __future__ import annotations

import ast
import gzip
import json
import os
import re
import zlib
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cuptiprof import enums
from cuptiprof.errors import ResultError
from cuptiprof.result import Progress, Result
from cuptiprof.tables import Strings, Table

MAX_BYTES = 4 << 30
"""Limit of the decompressed size: a gzip file of a few MB can claim any size."""

_MEMCPY = re.compile(r"Memcpy (\w+)(?: \((.+?) -> (.+?)\))?$")
_DEVICE_FIELDS = {
    "computeMajor": "compute_capability_major",
    "computeMinor": "compute_capability_minor",
    "totalGlobalMem": "global_memory_size",
    "numSms": "num_multiprocessors",
    "maxThreadsPerBlock": "max_threads_per_block",
    "regsPerBlock": "max_registers_per_block",
    "regsPerMultiprocessor": "max_registers_per_multiprocessor",
    "warpSize": "threads_per_warp",
    "sharedMemPerBlock": "max_shared_memory_per_block",
    "sharedMemPerMultiprocessor": "max_shared_memory_per_multiprocessor",
}

Event = dict[str, Any]


def escape_name(name: str) -> str:
    """A region name as one component of a region path."""
    return name.replace("/", "\\/")


def read_json(path: Path) -> Any:
    """The parsed file; numbers with a decimal point stay text.

    Raises:
        ResultError: unreadable, truncated, too large, or not JSON.
    """
    try:
        raw = path.read_bytes()
        if raw[:2] == b"\x1f\x8b":
            with gzip.open(path) as f:
                raw = f.read(MAX_BYTES + 1)
            if len(raw) > MAX_BYTES:
                raise ResultError(f"{path}: more than {MAX_BYTES >> 30} GiB decompressed")
        return json.loads(raw, parse_float=str)
    except (EOFError, zlib.error, gzip.BadGzipFile) as e:
        raise ResultError(f"{path}: truncated or damaged gzip file ({e})") from None
    except OSError as e:
        raise ResultError(f"{path}: {e.strerror or e}") from None
    except (ValueError, RecursionError) as e:
        raise ResultError(f"{path}: not a JSON trace ({e})", hint="is it a torch.profiler trace?") from None


def to_ns(value: Any) -> int:
    """Microseconds (int or decimal text) as integer ns, exactly; digits beyond the third decimal are cut."""
    if isinstance(value, int):
        return value * 1000
    text = str(value)
    if "e" in text or "E" in text:
        return round(float(text) * 1000)
    whole, _, fraction = text.partition(".")
    sign = -1 if whole.startswith("-") else 1
    return int(whole) * 1000 + sign * int((fraction + "000")[:3])


def number(value: Any) -> int:
    """A whole number out of a JSON value; 0 for anything else."""
    try:
        return int(float(value)) if isinstance(value, str) else int(value)
    except (TypeError, ValueError, OverflowError):
        return 0


def numbers(value: Any, length: int, fill: int) -> list[int]:
    """A list of `length` whole numbers out of a JSON list."""
    given = [number(v) for v in value[:length]] if isinstance(value, list) else []
    return given + [fill] * (length - len(given))


class _Columns:
    """Rows being collected, by column."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: dict[str, list[Any]] = defaultdict(list)

    def add(self, **row: Any) -> None:
        for key, value in row.items():
            self.values[key].append(value)

    def table(self, strings: Strings, configs: Table | None = None) -> Table:
        return Table.from_columns(self.name, self.values, strings, configs)


class _Importer:
    def __init__(self) -> None:
        self.strings = Strings()
        self.rows = {
            n: _Columns(n)
            for n in (
                "kernels", "launch_configs", "memcpys", "memsets", "api_calls", "synchronizations", "regions", "markers",
                "overhead", "devices",
            )
        }  # fmt: skip
        self.configs: dict[tuple[int, ...], int] = {}
        self.spans: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
        self.unknown = 0

    def event(self, e: Event) -> None:
        category = e.get("cat")
        handler = self._HANDLERS.get(str(category).lower())
        if handler is None or e.get("ph") != "X":
            return
        start = to_ns(e["ts"])
        end = start + to_ns(e["dur"])
        if end < start:
            raise ValueError("negative duration")
        args = e.get("args") or {}
        if not isinstance(args, dict):
            raise TypeError("args is not an object")
        handler(self, e, args, start, end)

    def kernel(self, e: Event, args: Event, start: int, end: int) -> None:
        grid = numbers(args.get("grid"), 3, 1)
        block = numbers(args.get("block"), 3, 1)
        key = (*grid, *block, number(args.get("registers per thread")), number(args.get("shared memory")))
        config = self.configs.get(key)
        if config is None:
            config = self.configs[key] = len(self.configs)
            self.rows["launch_configs"].add(
                grid_x=key[0], grid_y=key[1], grid_z=key[2], block_x=key[3], block_y=key[4], block_z=key[5],
                registers_per_thread=key[6], static_shared_memory=key[7], shared_memory_carveout=255,
            )  # fmt: skip
        self.rows["kernels"].add(
            start=start, end=end, name=self.strings.code(str(e["name"])), config=config,
            queued=to_ns(args.get("queued") or 0), graph_id=number(args.get("graph id")),
            graph_node_id=number(args.get("graph node id")), **self.place(args, e),
        )  # fmt: skip

    def place(self, args: Event, e: Event) -> dict[str, int]:
        return {
            "device": number(args.get("device", e.get("pid"))),
            "context": number(args.get("context")),
            "stream": number(args.get("stream", e.get("tid"))),
            "correlation_id": number(args.get("correlation")),
        }

    def memcpy(self, e: Event, args: Event, start: int, end: int) -> None:
        match = _MEMCPY.match(str(e["name"]))
        kind, src, dst = match.groups() if match else ("Unknown", None, None)
        place = self.place(args, e)
        to_device = number(args.get("toDevice", place["device"]))
        self.rows["memcpys"].add(
            start=start, end=end, bytes=number(args.get("bytes")), copy_kind=enums.code_of(enums.MEMCPY_KINDS, kind),
            src_kind=enums.code_of(enums.MEMORY_KINDS, src or ""), dst_kind=enums.code_of(enums.MEMORY_KINDS, dst or ""),
            src_device=number(args.get("fromDevice", place["device"])), dst_device=to_device,
            src_context=place["context"], dst_context=place["context"], is_peer=int("toDevice" in args), **place,
        )  # fmt: skip

    def memset(self, e: Event, args: Event, start: int, end: int) -> None:
        kind = str(e["name"]).partition("(")[2].rstrip(")")
        self.rows["memsets"].add(
            start=start, end=end, bytes=number(args.get("bytes")),
            memory_kind=enums.code_of(enums.MEMORY_KINDS, kind), **self.place(args, e),
        )  # fmt: skip

    def api(self, e: Event, args: Event, start: int, end: int) -> None:
        self.rows["api_calls"].add(
            start=start, end=end, name=self.strings.code(str(e["name"])), cbid=number(args.get("cbid")),
            correlation_id=number(args.get("correlation")), process=number(e.get("pid")) % 2**32,
            thread=number(e.get("tid")) % 2**32,
            domain=int(str(e["cat"]).lower() == "cuda_driver"),
        )  # fmt: skip

    def sync(self, e: Event, args: Event, start: int, end: int) -> None:
        kind = str(args.get("cuda_sync_kind", e["name"]))
        self.rows["synchronizations"].add(
            start=start, end=end, type=enums.code_of(enums.SYNC_KINDS, kind), context=number(args.get("context")),
            correlation_id=number(args.get("correlation")),
            stream=number(args["stream"]) % 2**32 if "stream" in args else 0xFFFFFFFF, event=0xFFFFFFFF,
        )  # fmt: skip

    def region(self, e: Event, args: Event, start: int, end: int) -> None:
        self.spans[number(e.get("tid")) % 2**32].append((start, end, str(e["name"])))

    def marker(self, e: Event, args: Event, start: int, end: int) -> None:
        self.rows["markers"].add(
            start=start, end=end, name=self.strings.code(str(e["name"])), category=self.strings.code(str(e["cat"])),
            id=number(args.get("External id")) % 2**32, thread=number(e.get("tid")) % 2**32, domain=0,
        )  # fmt: skip

    def overhead(self, e: Event, args: Event, start: int, end: int) -> None:
        self.rows["overhead"].add(start=start, end=end, kind=enums.code_of(enums.OVERHEAD_KINDS, str(e["name"])))

    _HANDLERS: dict[str, Callable[[_Importer, Event, Event, int, int], None]] = {
        "kernel": kernel,
        "gpu_memcpy": memcpy,
        "gpu_memset": memset,
        "cuda_runtime": api,
        "runtime": api,
        "cuda_driver": api,
        "cuda_sync": sync,
        "user_annotation": region,
        "cpu_op": marker,
        "overhead": overhead,
    }

    def build_regions(self) -> dict[int, list[tuple[int, int, int, int]]]:
        """The regions table out of nested spans; returns thread -> [(start, end, path code, instance), ...] by start."""
        placed: dict[int, list[tuple[int, int, int, int]]] = {}
        instance = 0
        for thread, spans in self.spans.items():
            spans.sort(key=lambda s: (s[0], -s[1]))
            stack: list[tuple[int, int, str]] = []  # end, instance, path
            placed[thread] = []
            for start, end, name in spans:
                while stack and stack[-1][0] <= start:
                    stack.pop()
                instance += 1
                path = (stack[-1][2] + "/" if stack else "") + escape_name(name)
                self.rows["regions"].add(
                    start=start, end=end, name=self.strings.code(name), path=self.strings.code(path), instance=instance,
                    parent=stack[-1][1] if stack else 0, thread=thread, depth=min(len(stack), 65535),
                )  # fmt: skip
                placed[thread].append((start, end, self.strings.code(path), instance))
                stack.append((end, instance, path))
        return placed

    def attribute(self, placed: dict[int, list[tuple[int, int, int, int]]]) -> None:
        """Thread and region of every call, and through the correlation ID of the work it caused."""
        api = self.rows["api_calls"].values
        sites: dict[int, tuple[int, int, int]] = {}
        by_thread: dict[int, list[int]] = defaultdict(list)
        for i, thread in enumerate(api["thread"]):
            by_thread[thread].append(i)
        codes, instances = [0] * len(api["start"]), [0] * len(api["start"])
        for thread, calls in by_thread.items():
            spans = placed.get(thread, [])
            calls.sort(key=lambda i: api["start"][i])
            at, stack = 0, []
            for i in calls:
                t = api["start"][i]
                while at < len(spans) and spans[at][0] <= t:
                    stack.append(spans[at])
                    at += 1
                while stack and stack[-1][1] <= t:
                    stack.pop()
                # An inner span that ended may hide under one that starts later and ended too; spans nest, so the top counts.
                code, instance = (stack[-1][2], stack[-1][3]) if stack else (0, 0)
                codes[i], instances[i] = code, instance
                sites[api["correlation_id"][i]] = (thread, code, instance)
        api["region"], api["region_instance"] = codes, instances
        for name in ("kernels", "memcpys", "memsets"):
            rows = self.rows[name].values
            found = [sites.get(c, (0, 0, 0)) for c in rows["correlation_id"]]
            rows["thread"] = [f[0] for f in found]
            rows["region"] = [f[1] for f in found]
            rows["region_instance"] = [f[2] for f in found]

    def devices(self, properties: Any) -> None:
        if isinstance(properties, str) and len(properties) < 1 << 20:  # older traces hold the list as Python text
            try:
                properties = ast.literal_eval(properties)
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                properties = []
        for d in properties if isinstance(properties, list) else []:
            if not isinstance(d, dict):
                continue
            row = {column: number(d.get(key)) for key, column in _DEVICE_FIELDS.items()}
            warps = number(d.get("maxThreadsPerMultiprocessor")) // max(row["threads_per_warp"], 1)
            self.rows["devices"].add(
                device=number(d.get("id")), name=self.strings.code(str(d.get("name", ""))),
                max_warps_per_multiprocessor=warps, **row,
            )  # fmt: skip


def import_trace(path: str | os.PathLike[str], progress: Progress | None = None) -> Result:
    """Open a torch.profiler trace (``.json`` or ``.json.gz``).

    Kernels, copies and sets carry the thread of their launch call and the innermost user annotation open there at the
    call. Operators (``cpu_op``) are in ``markers``. Events that make no sense are counted in ``losses["unknown_records"]``.

    Raises:
        ResultError: unreadable, truncated, too large, or not such a trace.
    """
    file = Path(path)
    data = read_json(file)
    events = data.get("traceEvents") if isinstance(data, dict) else data
    if not isinstance(events, list):
        raise ResultError(f"{file}: no traceEvents: not a torch.profiler trace")
    importer = _Importer()
    for i, e in enumerate(events):
        if progress is not None and i % 8192 == 0:
            progress(i, len(events))
        try:
            importer.event(e)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            importer.unknown += 1
    top = data if isinstance(data, dict) else {}
    importer.devices(top.get("deviceProperties"))
    importer.attribute(importer.build_regions())
    strings = importer.strings
    configs = importer.rows["launch_configs"].table(strings)
    tables = {n: c.table(strings, configs if n == "kernels" else None) for n, c in importer.rows.items()}
    tables["launch_configs"] = configs
    distributed = top.get("distributedInfo")
    metadata = {
        "format": 1,
        "device": f"import:{file.name}",
        "simulated": False,
        "origin": {"file": file.name, "trace": str(top.get("traceName", ""))},
        "rank": number(distributed.get("rank")) if isinstance(distributed, dict) else 0,
    }
    base = number(top.get("baseTimeNanoseconds"))
    spans = [t for t in tables.values() if "start" in t and len(t)]
    if spans:
        metadata["start_time_ns"] = int(min(np.min(t["start"]) for t in spans))
        metadata["stop_time_ns"] = int(max(np.max(t["end"]) for t in spans))
        metadata["clock_pairs"] = [[metadata["start_time_ns"], metadata["start_time_ns"] + base]]
    return Result(tables, metadata, {"unknown_records": importer.unknown})
