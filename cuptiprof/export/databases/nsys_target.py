"""What Nsight Systems says of the machine and of the recording, and its samples of counters."""

from __future__ import annotations

import datetime

import numpy as np

from cuptiprof.data.enums import SAMPLE
from cuptiprof.data.thread_names import thread_names
from cuptiprof.export.databases.database_writer import Column, storable
from cuptiprof.export.databases.global_ids import MACHINE
from cuptiprof.export.databases.nsys_run import NsysRun
from cuptiprof.export.databases.nsys_schema import SCHEMA_VERSION
from cuptiprof.export.databases.own_facts import own_facts
from cuptiprof.io.sqlite.nsys import OF_GPU


def add_target(run: NsysRun) -> None:
    """Every table of this file."""
    _session(run)
    _devices(run)
    _contexts(run)
    _samples(run)


def _session(run: NsysRun) -> None:
    pids = run.ids.processes()
    name = "python (simulated)" if run.result.simulated else "python"
    run.add("PROCESSES", len(pids), {"globalPid": run.ids.pid(np.array(pids)), "pid": pids, "name": name})
    threads = thread_names(run.result)
    run.add(
        "ThreadNames",
        len(threads),
        {
            "nameId": [run.texts.number(name) for name in threads.values()],
            "globalTid": run.ids.of_threads(np.array(list(threads), np.int64)),
        },
    )
    run.add("ANALYSIS_DETAILS", 1, {"globalVid": MACHINE, "duration": run.end - run.begin, "startTime": 0, "stopTime": run.end - run.begin})  # fmt: skip
    if run.result.metadata.get("clock_pairs"):
        unix = run.result.clock_to_unix(run.begin)
        at = datetime.datetime.fromtimestamp(unix // 10**9, datetime.timezone.utc).replace(tzinfo=None)
        # In UTC: where the program ran is not known.
        columns: dict[str, Column] = {"utcEpochNs": unix, "utcTime": at.isoformat(), "localTime": at.isoformat()}
        run.add("TARGET_INFO_SESSION_START_TIME", 1, columns)
    capture = own_facts(run.result)
    run.add("META_DATA_CAPTURE", len(capture), {"name": list(capture), "value": list(capture.values())})
    parts = dict(zip(("MAJOR", "MINOR", "MICRO"), SCHEMA_VERSION.split("."), strict=True))
    export = {"EXPORT_SCHEMA_VERSION": SCHEMA_VERSION, **{f"EXPORT_SCHEMA_VERSION_{p}": n for p, n in parts.items()}}
    run.add("META_DATA_EXPORT", len(export), {"name": list(export), "value": list(export.values())})


def _devices(run: NsysRun) -> None:
    table = run.result.tables["devices"]
    columns: dict[str, Column] = {theirs: table[ours] for theirs, ours in OF_GPU.items()}
    columns |= {
        "vmId": MACHINE,
        "id": table["device"],
        "cuDevice": table["device"],
        "name": [storable(name) for name in table["name"]],
        "clockRate": table["core_clock_rate"].astype(np.int64) * 1000,
        "memoryBandwidth": table["global_memory_bandwidth"].astype(np.int64) * 1000,
        "smMajor": table["compute_capability_major"],
        "smMinor": table["compute_capability_minor"],
    }
    run.add("TARGET_INFO_GPU", len(table), columns)
    of_cuda: dict[str, Column] = {"numMultiprocessors": table["num_multiprocessors"]}
    for pid in run.ids.processes():
        here: dict[str, Column] = {"gpuId": table["device"], "cudaId": table["device"], "pid": pid}
        run.add("TARGET_INFO_CUDA_DEVICE", len(table), {**here, **of_cuda})


def _contexts(run: NsysRun) -> None:
    pid = run.ids.processes()[0]
    here: dict[str, Column] = {"hwId": 0, "vmId": 0, "processId": pid}
    contexts, streams = run.result.tables["contexts"], run.result.tables["streams"]
    run.add(
        "TARGET_INFO_CUDA_CONTEXT_INFO",
        len(contexts),
        {
            **here,
            "nullStreamId": contexts["null_stream"],
            "deviceId": contexts["device"],
            "contextId": contexts["context"],
            "parentContextId": contexts["parent"],
            "isGreenContext": contexts["is_green"],
        },
        {"parentContextId": 0},
    )
    flags: dict[str, Column] = {"priority": streams["priority"], "flag": streams["flag"]}
    run.add("TARGET_INFO_CUDA_STREAM", len(streams), {**here, "streamId": streams["stream"], "contextId": streams["context"], **flags})  # fmt: skip


def _samples(run: NsysRun) -> None:
    """A sample stands at its start; nsys rounds values to whole numbers, which we do not."""
    ranges, counters = run.result.tables["metric_ranges"], run.result.counters
    rows = np.flatnonzero(ranges["kind"] == SAMPLE)
    if not len(rows):
        return
    devices = np.unique(ranges["device"][rows]).tolist()
    names = list(counters)
    at = run.since(ranges["start"][rows])
    for metric, name in enumerate(names):
        values = counters[name][rows]
        there = np.isfinite(values)
        run.add(
            "GPU_METRICS",
            int(there.sum()),
            {
                "timestamp": at[there],
                "typeId": ranges["device"][rows][there],
                "metricId": metric,
                "value": values[there],
            },
        )
    pairs = [(device, metric) for device in devices for metric in range(len(names))]
    run.add(
        "TARGET_INFO_GPU_METRICS",
        len(pairs),
        {
            "typeId": [device for device, _ in pairs],
            "sourceId": 0,
            "typeName": [f"cuptiprof samples [dev {device}]" for device, _ in pairs],
            "metricId": [metric for _, metric in pairs],
            "metricName": [storable(names[metric]) for _, metric in pairs],
        },
    )
