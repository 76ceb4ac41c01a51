"""Chrome trace JSON with Kineto's fields, so that Perfetto, HTA and TensorBoard read it as torch.profiler's own."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from cuptiprof import enums
from cuptiprof.occupancy import active_blocks, estimated_achieved_occupancy, limits
from cuptiprof.report.names import display_name
from cuptiprof.result import Progress, Result
from cuptiprof.tables import Table

Event = dict[str, Any]
_BATCH = 4096


class _Us:
    """A time in ns as microseconds with three decimals: written from the integer, since a float would round."""

    def __init__(self, ns: int) -> None:
        self.ns = ns

    def __str__(self) -> str:
        sign, ns = ("-", -self.ns) if self.ns < 0 else ("", self.ns)
        return f"{sign}{ns // 1000}.{ns % 1000:03d}"


def _dump(event: Event) -> str:
    """One event; `ts` and `dur` are exact decimals."""
    times = "".join(f', "{k}": {event[k]}' for k in ("ts", "dur") if k in event)
    rest = json.dumps({k: v for k, v in event.items() if k not in ("ts", "dur")})
    return rest[:-1] + times + "}"


def write(result: Result, path: Path, compress: bool, progress: Progress | None) -> None:
    """Write the trace; events are streamed, so memory does not grow with the run."""
    total = sum(len(result.tables[n]) for n in ("kernels", "memcpys", "memsets", "api_calls", "regions", "markers"))
    with gzip.open(path, "wb", compresslevel=6) if compress else path.open("wb") as file:
        file.write((json.dumps(_header(result), indent=1)[:-2] + ',\n "traceEvents": [\n').encode())
        batch: list[str] = []
        first, done = True, 0
        for event in _events(result):
            batch.append(_dump(event))
            if len(batch) == _BATCH:
                file.write((("" if first else ",\n") + ",\n".join(batch)).encode())
                first = False
                done += len(batch)
                batch.clear()
                if progress is not None:
                    progress(min(done, total), total)
        if batch:
            file.write((("" if first else ",\n") + ",\n".join(batch)).encode())
        file.write(b"\n ]\n}\n")
    if progress is not None:
        progress(total, total)


def _origin(result: Result) -> int:
    return int(result.metadata.get("start_time_ns", 0))


def _header(result: Result) -> Event:
    m = result.metadata
    pairs = m.get("clock_pairs") or [[0, 0]]
    return {
        "schemaVersion": 1,
        "deviceProperties": [_device(result.devices, i) for i in range(len(result.devices))],
        # HTA finds the rank by the text '"rank": N', space included.
        "distributedInfo": {"rank": int(m.get("rank", 0))},
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": int(pairs[0][1]) - int(pairs[0][0]),
        "traceName": ("simulated " if result.simulated else "") + f"cuptiprof {m.get('cuptiprof_version', '')}",
        "simulated": result.simulated,
    }


def _device(t: Table, i: int) -> Event:
    row = t.row(i)
    cc = (row["compute_capability_major"], row["compute_capability_minor"])
    known = limits(*cc)
    return {
        "id": row["device"],
        "name": row["name"],
        "totalGlobalMem": row["global_memory_size"],
        "computeMajor": cc[0],
        "computeMinor": cc[1],
        "maxThreadsPerBlock": row["max_threads_per_block"],
        "maxThreadsPerMultiprocessor": row["max_warps_per_multiprocessor"] * 32,
        "regsPerBlock": row["max_registers_per_block"],
        "warpSize": row["threads_per_warp"],
        "sharedMemPerBlock": row["max_shared_memory_per_block"],
        "numSms": row["num_multiprocessors"],
        "regsPerMultiprocessor": row["max_registers_per_multiprocessor"],
        "sharedMemPerBlockOptin": known.max_smem_per_block_optin if known else 0,
        "sharedMemPerMultiprocessor": row["max_shared_memory_per_multiprocessor"],
    }


def _events(result: Result) -> Iterator[Event]:
    launched = {int(c) for n in ("kernels", "memcpys", "memsets") for c in result.tables[n]["correlation_id"]}
    yield from _metadata(result)
    yield from _kernels(result)
    yield from _copies(result)
    yield from _calls(result, launched)
    yield from _regions(result)
    yield from _markers(result)
    yield from _syncs(result)
    end = int(result.metadata.get("stop_time_ns", 0)) - _origin(result)
    yield {
        "ph": "i",
        "s": "g",
        "name": "Record Window End",
        "pid": "",
        "tid": "",
        "ts": _Us(_origin(result) + end),
    }


def _process(result: Result) -> int:
    if len(result.api_calls):
        return int(result.api_calls["process"][0])
    return int(result.metadata.get("pid", 0))


def _metadata(result: Result) -> Iterator[Event]:
    ts, pid = _Us(_origin(result)), _process(result)

    def row(name: str, pid: int, tid: int, /, **args: Any) -> Event:
        return {"name": name, "ph": "M", "pid": pid, "tid": tid, "args": args, "ts": ts}

    label = "CPU (simulated run)" if result.simulated else "CPU"
    yield row("process_name", pid, 0, name="python")
    yield row("process_labels", pid, 0, labels=label)
    yield row("process_sort_index", pid, 0, sort_index=pid)
    for device in sorted({int(d) for n in ("kernels", "memcpys", "memsets") for d in result.tables[n]["device"]}):
        yield row("process_name", device, 0, name="python")
        yield row("process_labels", device, 0, labels=f"GPU {device}" + (" (simulated)" if result.simulated else ""))
        yield row("process_sort_index", device, 0, sort_index=5_000_000 + device)
    streams = {
        (int(d), int(s))
        for n in ("kernels", "memcpys", "memsets")
        for d, s in zip(result.tables[n]["device"], result.tables[n]["stream"], strict=True)
    }
    for device, stream in sorted(streams):
        yield row("thread_name", device, stream, name=f"stream {stream} ")
        yield row("thread_sort_index", device, stream, sort_index=stream)
    for thread in sorted({int(t) for t in result.api_calls["thread"]} | {int(t) for t in result.regions["thread"]}):
        yield row("thread_name", pid, thread, name=f"thread {thread} (python)")


def _flow(ph: str, correlation: int, pid: int, tid: int, ts: int) -> Event:
    event = {
        "ph": ph,
        "id": correlation,
        "pid": pid,
        "tid": tid,
        "cat": "ac2g",
        "name": "ac2g",
        "ts": _Us(ts),
    }
    return event | {"bp": "e"} if ph == "f" else event


def _kernels(result: Result) -> Iterator[Event]:
    t, configs = result.kernels, result.launch_configs
    names = [display_name(s) for s in t.strings]
    devices = {int(r["device"]): r for r in result.devices.rows()}
    shapes = [_shape(configs.row(i)) for i in range(len(configs))]
    columns = (
        "start",
        "end",
        "correlation_id",
        "device",
        "context",
        "stream",
        "config",
        "queued",
        "graph_id",
    )
    arrays = [t.codes(c).tolist() for c in (*columns, "graph_node_id", "name", "region_instance")]
    for start, end, correlation, device, context, stream, config, queued, graph, node, name, external in zip(
        *arrays, strict=True
    ):
        shape = shapes[config]
        args: Event = {
            "External id": external,
            "queued": queued,
            "device": device,
            "context": context,
            "stream": stream,
            "correlation": correlation,
            "registers per thread": shape["registers"],
            "shared memory": shape["shared"],
            "grid": shape["grid"],
            "block": shape["block"],
            **_fit(shape, devices.get(device)),
        }
        if graph:
            args |= {"graph id": graph, "graph node id": node}
        yield {
            "ph": "X", "cat": "kernel", "name": names[name], "pid": device, "tid": stream, "ts": _Us(start),
            "dur": _Us(end - start), "args": args,
        }  # fmt: skip
        yield _flow("f", correlation, device, stream, start)


def _shape(row: Event) -> Event:
    grid = [row[f"grid_{a}"] for a in "xyz"]
    block = [row[f"block_{a}"] for a in "xyz"]
    return {
        "grid": grid,
        "block": block,
        "blocks": grid[0] * grid[1] * grid[2],
        "threads": block[0] * block[1] * block[2],
        "registers": row["registers_per_thread"],
        "shared": row["static_shared_memory"] + row["dynamic_shared_memory"],
    }


def _fit(shape: Event, device: Event | None) -> Event:
    if device is None or not device["num_multiprocessors"]:
        return {}
    sms = device["num_multiprocessors"]
    cc = (device["compute_capability_major"], device["compute_capability_minor"])
    estimate = estimated_achieved_occupancy(
        cc, sms, shape["blocks"], shape["threads"], shape["registers"], shape["shared"]
    )
    return {
        "blocks per SM": round(shape["blocks"] / sms, 6),
        "warps per SM": round(shape["blocks"] / sms * shape["threads"] / 32, 6),
        "est. achieved occupancy %": round(estimate),
        "active blocks per SM": active_blocks(cc, shape["threads"], shape["registers"], shape["shared"]),
    }


def _copies(result: Result) -> Iterator[Event]:
    for table, category in ((result.memcpys, "gpu_memcpy"), (result.memsets, "gpu_memset")):
        for row in table.rows():
            duration = row["end"] - row["start"]
            args: Event = {
                "External id": row["region_instance"],
                "device": row["device"],
                "context": row["context"],
                "stream": row["stream"],
                "correlation": row["correlation_id"],
                "bytes": row["bytes"],
                "memory bandwidth (GB/s)": row["bytes"] / duration if duration else 0.0,
            }
            if category == "gpu_memcpy":
                kinds = [enums.MEMORY_KINDS.get(row[k], "Unknown") for k in ("src_kind", "dst_kind")]
                name = f"Memcpy {enums.MEMCPY_KINDS.get(row['copy_kind'], 'Unknown')} ({kinds[0]} -> {kinds[1]})"
                if row["is_peer"]:
                    args |= {
                        "fromDevice": row["src_device"],
                        "inDevice": row["device"],
                        "toDevice": row["dst_device"],
                    }
            else:
                name = f"Memset ({enums.MEMORY_KINDS.get(row['memory_kind'], 'Unknown')})"
            yield {
                "ph": "X", "cat": category, "name": name, "pid": row["device"], "tid": row["stream"],
                "ts": _Us(row["start"]), "dur": _Us(duration), "args": args,
            }  # fmt: skip
            yield _flow("f", row["correlation_id"], row["device"], row["stream"], row["start"])


def _calls(result: Result, launched: set[int]) -> Iterator[Event]:
    t = result.api_calls
    columns = (
        "start",
        "end",
        "name",
        "correlation_id",
        "cbid",
        "process",
        "thread",
        "domain",
        "region_instance",
    )
    for start, end, name, correlation, cbid, process, thread, domain, external in zip(
        *(t.codes(c).tolist() for c in columns), strict=True
    ):
        yield {
            "ph": "X", "cat": "cuda_driver" if domain else "cuda_runtime", "name": t.strings[name], "pid": process,
            "tid": thread, "ts": _Us(start), "dur": _Us(end - start),
            "args": {"External id": external, "cbid": cbid, "correlation": correlation},
        }  # fmt: skip
        if correlation in launched:
            yield _flow("s", correlation, process, thread, start)


def _regions(result: Result) -> Iterator[Event]:
    pid = _process(result)
    spans: dict[int, dict[tuple[int, int], list[int]]] = {}
    for name in ("kernels", "memcpys", "memsets"):
        t = result.tables[name]
        for instance, device, stream, start, end in zip(
            *(t.codes(c).tolist() for c in ("region_instance", "device", "stream", "start", "end")),
            strict=True,
        ):
            # The innermost region only, as Kineto does: HTA takes a projected ProfilerStep for one more step.
            if instance:
                reach = spans.setdefault(instance, {}).setdefault((device, stream), [start, end])
                reach[0], reach[1] = min(reach[0], start), max(reach[1], end)
    for row in result.regions.rows():
        args = {"External id": row["instance"], "path": row["path"]}
        if row["metadata"]:
            args["metadata"] = row["metadata"]
        yield {
            "ph": "X", "cat": "user_annotation", "name": row["name"], "pid": pid, "tid": row["thread"],
            "ts": _Us(row["start"]), "dur": _Us(row["end"] - row["start"]), "args": args,
        }  # fmt: skip
        for (device, stream), (start, end) in spans.get(row["instance"], {}).items():
            yield {
                "ph": "X", "cat": "gpu_user_annotation", "name": row["name"], "pid": device, "tid": stream,
                "ts": _Us(start - 1), "dur": _Us(end - start + 2), "args": {"External id": row["instance"]},
            }  # fmt: skip


def _markers(result: Result) -> Iterator[Event]:
    pid = _process(result)
    for row in result.markers.rows():
        category = "user_annotation" if row["category"] in ("step", "nvtx") else row["category"]
        yield {
            "ph": "X", "cat": category, "name": row["name"], "pid": pid, "tid": row["thread"], "ts": _Us(row["start"]),
            "dur": _Us(row["end"] - row["start"]), "args": {"External id": row["id"]},
        }  # fmt: skip


def _syncs(result: Result) -> Iterable[Event]:
    device_of = dict(zip(result.contexts["context"].tolist(), result.contexts["device"].tolist(), strict=True))
    for row in result.synchronizations.rows():
        kind = enums.SYNC_KINDS.get(row["type"], "Unknown")
        stream = -1 if row["stream"] == 0xFFFFFFFF else row["stream"]
        device = device_of.get(row["context"], 0)
        yield {
            "ph": "X", "cat": "cuda_sync", "name": kind, "pid": device, "tid": stream, "ts": _Us(row["start"]),
            "dur": _Us(row["end"] - row["start"]),
            "args": {
                "cuda_sync_kind": kind, "stream": stream, "correlation": row["correlation_id"], "device": device,
                "context": row["context"],
            },
        }  # fmt: skip
    pid = _process(result)
    for row in result.overhead.rows():
        yield {
            "ph": "X", "cat": "overhead", "name": enums.OVERHEAD_KINDS.get(row["kind"], "Unknown"), "pid": -1,
            "tid": row["thread"] or pid, "ts": _Us(row["start"]), "dur": _Us(row["end"] - row["start"]), "args": {},
        }  # fmt: skip
