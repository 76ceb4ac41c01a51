"""torch.profiler traces (Kineto's Chrome JSON) -> Result.

Times are microseconds with up to three decimals and up to 1.7e15 in size: more digits than a float64 has. They are read
as text and turned into integer ns.
"""

from __future__ import annotations

import ast
import json
import os
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from cuptiprof.data import enums
from cuptiprof.data.result import Progress, Result
from cuptiprof.data.tables import Strings, Table
from cuptiprof.errors import ResultError
from cuptiprof.io.kineto_collectives import CollectiveRows, is_collective
from cuptiprof.io.kineto_operators import OperatorEvents
from cuptiprof.io.open_spans import Inherited, Placed, Spans, spans_at
from cuptiprof.io.trace_file import read_trace_file
from cuptiprof.text.names import escape_name

_OF_THE_HOST = ("cpu_op", "user_annotation")
_LONGEST = 2**62  # ns; what is beyond is no time

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

_WORK = ("kernels", "memcpys", "memsets")

Event = dict[str, Any]


def read_json(path: Path) -> Any:
    """The parsed file; numbers with a decimal point stay text.

    Raises:
        ResultError: unreadable, truncated, too large, or not JSON.
    """
    raw = read_trace_file(path)
    try:
        return json.loads(raw, parse_float=str)
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


def count(value: Any, bits: int = 32) -> int:
    """An ID or amount that its column can hold.

    Raises:
        OverflowError: it cannot; the event makes no sense.
    """
    whole = number(value)
    if not 0 <= whole < 1 << bits:
        raise OverflowError(f"{whole} in {bits} bits")
    return whole


def counts(value: Any, length: int, fill: int) -> list[int]:
    """A list of `length` sizes out of a JSON list."""
    given = [count(v, 31) for v in value[:length]] if isinstance(value, list) else []
    return given + [fill] * (length - len(given))


def bandwidth(args: Event) -> float:
    """GB/s as the file has it; 0 where it has none. Its times may be whole microseconds, this is not made from them."""
    try:
        value = float(args.get("memory bandwidth (GB/s)") or 0)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return value if 0 <= value < 1e6 else 0.0


def distributed(info: Any) -> dict[str, Any]:
    """The trace's ``distributedInfo``, as JSON that can be written again: backend, world size, process groups."""
    if not isinstance(info, dict):
        return {}
    try:
        return dict(json.loads(json.dumps(info, allow_nan=False)))
    except (ValueError, RecursionError):
        return {}


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
    def __init__(self, base: int) -> None:
        self.base = base  # Unix time of the file's time 0, ns
        self.strings = Strings()
        self.rows = {
            n: _Columns(n)
            for n in (
                "kernels", "launch_configs", "memcpys", "memsets", "api_calls", "synchronizations", "regions", "overhead",
                "devices",
            )
        }  # fmt: skip
        self.configs: dict[tuple[int, ...], int] = {}
        self.external: dict[str, list[int]] = {n: [] for n in _WORK}
        self.spans: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
        self.operators = OperatorEvents(self.strings)
        self.collectives = CollectiveRows(self.strings)
        self.instances = 0
        self.unknown = 0

    def event(self, e: Event) -> None:
        category = str(e.get("cat")).lower()
        handler = self._HANDLERS.get(category)
        if category == "fwdbwd" and e.get("ph") in ("s", "f"):
            self.operators.arrow(e["ph"], count(e.get("id"), 63), number(e.get("tid")) % 2**32, to_ns(e["ts"]))
        if handler is None or e.get("ph") != "X":
            return
        start = to_ns(e["ts"])
        end = start + to_ns(e["dur"])
        if end < start:
            raise ValueError("negative duration")
        if not (start > -_LONGEST and end < _LONGEST):
            raise OverflowError("no time")
        args = e.get("args") or {}
        if not isinstance(args, dict):
            raise TypeError("args is not an object")
        if category in _OF_THE_HOST and is_collective(str(e["name"])):
            self.collectives.add(e, args, start, end)
        handler(self, e, args, start, end)

    def kernel(self, e: Event, args: Event, start: int, end: int) -> None:
        grid = counts(args.get("grid"), 3, 1)
        block = counts(args.get("block"), 3, 1)
        key = (*grid, *block, count(args.get("registers per thread"), 16), count(args.get("shared memory"), 31))
        config = self.configs.get(key)
        if config is None:
            config = self.configs[key] = len(self.configs)
            self.rows["launch_configs"].add(
                grid_x=key[0], grid_y=key[1], grid_z=key[2], block_x=key[3], block_y=key[4], block_z=key[5],
                registers_per_thread=key[6], static_shared_memory=key[7], shared_memory_carveout=255,
            )  # fmt: skip
        self.rows["kernels"].add(
            start=start, end=end, name=self.strings.code(str(e["name"])), config=config,
            queued=max(count(args.get("queued"), 63) - self.base, 0), graph_id=count(args.get("graph id")),
            graph_node_id=count(args.get("graph node id"), 64), **self.place(args, e),
        )  # fmt: skip
        self.launched("kernels", args)

    def place(self, args: Event, e: Event) -> dict[str, int]:
        return {
            "device": count(args.get("device", e.get("pid"))),
            "context": count(args.get("context")),
            "stream": count(args.get("stream", e.get("tid"))),
            "correlation_id": count(args.get("correlation")),
        }

    def launched(self, rows: str, args: Event) -> None:
        """The External id of a piece of work."""
        self.external[rows].append(number(args.get("External id")) % 2**32)

    def memcpy(self, e: Event, args: Event, start: int, end: int) -> None:
        match = _MEMCPY.match(str(e["name"]))
        kind, src, dst = match.groups() if match else ("Unknown", None, None)
        place = self.place(args, e)
        to_device = count(args.get("toDevice", place["device"]))
        self.rows["memcpys"].add(
            start=start, end=end, bytes=count(args.get("bytes"), 64), copy_kind=enums.code_of(enums.MEMCPY_KINDS, kind),
            src_kind=enums.code_of(enums.MEMORY_KINDS, src or ""), dst_kind=enums.code_of(enums.MEMORY_KINDS, dst or ""),
            src_device=count(args.get("fromDevice", place["device"])), dst_device=to_device,
            src_context=place["context"], dst_context=place["context"], is_peer=int("toDevice" in args), bandwidth=bandwidth(args), **place,
        )  # fmt: skip
        self.launched("memcpys", args)

    def memset(self, e: Event, args: Event, start: int, end: int) -> None:
        kind = str(e["name"]).partition("(")[2].rstrip(")")
        self.rows["memsets"].add(
            start=start, end=end, bytes=count(args.get("bytes"), 64),
            memory_kind=enums.code_of(enums.MEMORY_KINDS, kind), bandwidth=bandwidth(args), **self.place(args, e),
        )  # fmt: skip
        self.launched("memsets", args)

    def api(self, e: Event, args: Event, start: int, end: int) -> None:
        self.rows["api_calls"].add(
            start=start, end=end, name=self.strings.code(str(e["name"])), cbid=count(args.get("cbid")),
            correlation_id=count(args.get("correlation")), process=number(e.get("pid")) % 2**32,
            thread=number(e.get("tid")) % 2**32,
            domain=int(str(e["cat"]).lower() == "cuda_driver"),
        )  # fmt: skip

    def sync(self, e: Event, args: Event, start: int, end: int) -> None:
        kind = str(args.get("cuda_sync_kind", e["name"]))
        self.rows["synchronizations"].add(
            start=start, end=end, type=enums.code_of(enums.SYNC_KINDS, kind), context=number(args.get("context")) % 2**32,
            correlation_id=count(args.get("correlation")),
            stream=number(args["stream"]) % 2**32 if "stream" in args else 0xFFFFFFFF, event=0xFFFFFFFF,
        )  # fmt: skip

    def region(self, e: Event, args: Event, start: int, end: int) -> None:
        self.spans[number(e.get("tid")) % 2**32].append((start, end, str(e["name"])))

    def operator(self, e: Event, args: Event, start: int, end: int) -> None:
        thread, external = number(e.get("tid")) % 2**32, number(args.get("External id")) % 2**32
        self.operators.add(str(e["name"]), start, end, thread, external, args)

    def overhead(self, e: Event, args: Event, start: int, end: int) -> None:
        self.rows["overhead"].add(start=start, end=end, kind=enums.code_of(enums.OVERHEAD_KINDS, str(e["name"])))

    _HANDLERS: ClassVar[dict[str, Callable[[_Importer, Event, Event, int, int], None]]] = {
        "kernel": kernel,
        "gpu_memcpy": memcpy,
        "gpu_memset": memset,
        "cuda_runtime": api,
        "runtime": api,
        "cuda_driver": api,
        "cuda_sync": sync,
        "user_annotation": region,
        "cpu_op": operator,
        "overhead": overhead,
    }

    def build_regions(self) -> dict[int, Spans]:
        """The regions table out of nested spans; returns thread -> its placed spans by start.

        Threads that torch's autograd engine runs on nest under the region open on the only other thread that has one: a
        trace does not say which thread called backward.
        """
        placed: dict[int, Spans] = {}
        workers = self.operators.autograd_threads
        for thread in sorted(self.spans, key=lambda t: t in workers):
            spans = sorted(self.spans[thread], key=lambda s: (s[0], -s[1]))
            inherit = Inherited([placed[t] for t in placed if t not in workers]) if thread in workers else None
            stack: list[Placed] = []
            placed[thread] = []
            for start, end, name in spans:
                while stack and stack[-1].end <= start:
                    stack.pop()
                parent = stack[-1] if stack else inherit.at(start) if inherit else None
                path = (parent.path + "/" if parent else "") + escape_name(name)
                self.instances += 1
                span = Placed(
                    start,
                    end,
                    path,
                    self.strings.code(path),
                    self.instances,
                    parent.depth + 1 if parent else 0,
                )
                self.rows["regions"].add(
                    start=start, end=end, name=self.strings.code(name), path=span.code, instance=span.instance,
                    parent=parent.instance if parent else 0, thread=thread, depth=min(span.depth, 65535),
                )  # fmt: skip
                placed[thread].append(span)
                stack.append(span)
        return placed

    def attribute(self, placed: dict[int, Spans]) -> None:
        """Thread and region of every call, and through the correlation ID of the work it caused."""
        api = self.rows["api_calls"].values
        sites: dict[int, tuple[int, int, int, int]] = {}
        by_thread: dict[int, list[int]] = defaultdict(list)
        for i, thread in enumerate(api["thread"]):
            by_thread[thread].append(i)
        caused = {c for n in _WORK for c in self.rows[n].values["correlation_id"]}
        codes, instances = [0] * len(api["start"]), [0] * len(api["start"])
        workers = self.operators.autograd_threads
        for thread, calls in by_thread.items():
            calls.sort(key=lambda i: api["start"][i])
            times = [api["start"][i] for i in calls]
            for i, t, span in zip(calls, times, spans_at(placed, workers, thread, times), strict=True):
                correlation = api["correlation_id"][i]
                if correlation not in caused:
                    continue
                if span is not None:
                    codes[i], instances[i] = span.code, span.instance
                sites[correlation] = (thread, codes[i], instances[i], t)
        api["region"], api["region_instance"] = codes, instances
        for name in _WORK:
            rows = self.rows[name].values
            found = [sites.get(c, (0, 0, 0, 0)) for c in rows["correlation_id"]]
            rows["thread"] = [f[0] for f in found]
            rows["region"] = [f[1] for f in found]
            rows["region_instance"] = [f[2] for f in found]
            time = np.array([f[3] for f in found], np.int64)
            launched = self.operators.launches(
                np.asarray(rows["thread"], np.int64), time, np.asarray(self.external[name], np.int64)
            )
            rows["operator_instance"], rows["operator"], rows["backward"] = (column.tolist() for column in launched)

    def operator_table(self, placed: dict[int, Spans]) -> Table:
        """The operators, each in the innermost region open where it began."""
        operators = self.operators
        rows: dict[int, list[int]] = defaultdict(list)
        for i in operators.by_start():
            rows[operators.threads[i]].append(i)
        regions = np.zeros((len(operators), 2), np.int64)
        for thread, mine in rows.items():
            times = [operators.starts[i] for i in mine]
            for i, span in zip(mine, spans_at(placed, operators.autograd_threads, thread, times), strict=True):
                if span is not None:
                    regions[i] = span.code, span.instance
        return Table.from_columns("operators", operators.columns(regions), self.strings)

    def devices(self, properties: Any) -> None:
        if isinstance(properties, str) and len(properties) < 1 << 20:  # older traces hold the list as Python text
            try:
                properties = ast.literal_eval(properties)
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                properties = []
        for d in properties if isinstance(properties, list) else []:
            if not isinstance(d, dict):
                continue
            try:
                row = {
                    c: count(d.get(key), 64 if c == "global_memory_size" else 32) for key, c in _DEVICE_FIELDS.items()
                }
                warps = count(d.get("maxThreadsPerMultiprocessor")) // max(row["threads_per_warp"], 1)
                ordinal = count(d.get("id"))
            except OverflowError:
                self.unknown += 1
                continue
            self.rows["devices"].add(
                device=ordinal, name=self.strings.code(str(d.get("name", ""))),
                max_warps_per_multiprocessor=warps, **row,
            )  # fmt: skip


def import_trace(path: str | os.PathLike[str], progress: Progress | None = None) -> Result:
    """Open a torch.profiler trace (JSON, plain or compressed by gzip or Zstandard).

    Kernels, copies and sets carry the thread of their launch call and the innermost user annotation open there at the
    call, and the innermost operator. Events that make no sense are counted in ``losses["unknown_records"]``.

    Raises:
        ResultError: unreadable, truncated, too large, or not such a trace.
    """
    file = Path(path)
    data = read_json(file)
    events = data.get("traceEvents") if isinstance(data, dict) else data
    if not isinstance(events, list):
        raise ResultError(f"{file}: no traceEvents: not a torch.profiler trace")
    top = data if isinstance(data, dict) else {}
    base = number(top.get("baseTimeNanoseconds"))
    base = base if 0 <= base < _LONGEST else 0
    importer = _Importer(base)
    for i, e in enumerate(events):
        if progress is not None and i % 8192 == 0:
            progress(i, len(events))
        try:
            importer.event(e)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            importer.unknown += 1
    importer.devices(top.get("deviceProperties"))
    placed = importer.build_regions()
    importer.attribute(placed)
    strings = importer.strings
    configs = importer.rows["launch_configs"].table(strings)
    tables = {n: c.table(strings, configs if n == "kernels" else None) for n, c in importer.rows.items()}
    tables["launch_configs"] = configs
    tables["operators"] = importer.operator_table(placed)
    importer.collectives.put(tables)
    group = distributed(top.get("distributedInfo"))
    metadata: dict[str, Any] = {
        "format": 1,
        "device": f"import:{file.name}",
        "simulated": False,
        "origin": {"file": file.name, "trace": str(top.get("traceName", ""))},
        "rank": max(min(number(group.get("rank")), 2**31 - 1), 0),
        **({"distributed": group} if group else {}),
    }
    spans = [t for t in tables.values() if "start" in t and len(t)]
    if spans:
        begin = int(min(np.min(t["start"]) for t in spans))
        metadata["start_time_ns"] = begin
        metadata["stop_time_ns"] = int(max(np.max(t["end"]) for t in spans))
        metadata["clock_pairs"] = [[begin, begin + base]]
    return Result(tables, metadata, {"unknown_records": importer.unknown})
