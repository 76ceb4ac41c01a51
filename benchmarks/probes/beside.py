"""Counters beside activity tracing and other threads; the device's own word; an image to keep."""

from __future__ import annotations

import base64
import threading
import zlib
from collections import Counter
from typing import Any

import numpy as np

import cuptiprof
from benchmarks.gpu_work import Work
from benchmarks.probes.raw import INST, ONE_PASS, TWO_PASSES, CuptiFailed, Ranges, RawApi

SEVERAL = [*TWO_PASSES, "l1tex__t_sector_hit_rate.pct", "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"]
LAUNCHES = 20
SUPPORT = ("unknown", "unsupported", "disabled", "supported")  # CUpti_Profiler_Support_Level


def device_supported(work: Work) -> dict[str, Any]:
    """What cuptiProfilerDeviceSupported says, field by field, and the size of the availability images."""
    api = RawApi(work.device)
    out: dict[str, Any] = {"chip": api.chip, "version": api.version}
    fields = ("supported", "architecture", "sli", "vgpu", "confidential", "cmp", "wsl")
    for what, number in (("ranges", 0), ("pc sampling", 1), ("pm sampling", 3)):  # CUpti_Profiler_API
        try:
            p = api.call("cuptiProfilerDeviceSupported", device=0, api=number)
            out[what] = {f: SUPPORT[getattr(p, f)] for f in fields}
        except CuptiFailed as e:
            out[what] = str(e)
    for function, key in (("cuptiProfilerGetCounterAvailability", "context"), ("cuptiPmSamplingGetCounterAvailability", "device")):  # fmt: skip
        try:
            out[function] = api.call(function, **{key: api.context() if key == "context" else 0}).image_size
        except CuptiFailed as e:
            out[function] = str(e)
    return out


def _records(work: Work, **keywords: Any) -> dict[str, Any]:
    """Kernel records of twenty counted long launches between two uncounted ones."""
    with cuptiprof.profile(device=work.device, activities=["kernel"], **keywords) as prof:
        with cuptiprof.region("counted"):
            for _ in range(LAUNCHES):
                work.busy()
        work.synchronize()
    result = prof.result()
    kernels = result.kernels
    per_launch = Counter(Counter(kernels["correlation_id"].tolist()).values())
    duration = kernels["duration"] / 1e3
    out = {
        "launches": result.metadata["launches"]["launches"],
        "kernel_records": len(kernels),
        "launches by number of records": {str(k): v for k, v in per_launch.items()},
        "names": sorted(set(map(str, kernels["name"])))[:4],
        "duration_us": [round(float(x), 2) for x in np.percentile(duration, [0, 50, 100])] if len(kernels) else [],
        "losses": dict(result.losses),
    }
    if keywords:
        out["counted"] = len(result.metric_ranges)
        out["passes"] = result.metadata["counters"]["passes"]
        out["events"] = result.metadata["counters"]["events"]
        counted = set(result.metric_ranges["correlation_id"].tolist())
        out["counted_without_record"] = len(counted - set(kernels["correlation_id"].tolist()))
    return out


def records_of_counted_launches(work: Work) -> dict[str, Any]:
    """Counters and activity tracing together: have counted launches kernel records, how many per replay, are times inflated?

    Assumed: one record a launch, and the time of a replayed kernel is that of one execution.
    """
    cases: dict[str, dict[str, Any]] = {
        "tracing": {},
        "direct": {"metrics": ONE_PASS, "strategy": "replay"},
        "replay": {"metrics": SEVERAL, "strategy": "replay"},
        "tracing again": {},
    }
    out: dict[str, Any] = {name: _records(work, **keywords) for name, keywords in cases.items()}
    plain = out["tracing"]["duration_us"]
    for name in ("direct", "replay", "tracing again"):
        if plain and out[name]["duration_us"]:
            out[name]["median_duration_to_tracing"] = round(out[name]["duration_us"][1] / plain[1], 4)
    return out


def two_threads(work: Work) -> dict[str, Any]:
    """Two threads launch counted kernels at once: is each counted or reported busy, with the values of one thread?

    Assumed: they take turns or are reported busy.
    """
    with cuptiprof.profile(device=work.device, metrics=[INST], strategy="replay") as prof:
        work.small(1)
        work.other(1)
        work.synchronize()
    alone = dict(zip(map(str, prof.result().metric_ranges["name"]), prof.result().counters[INST].tolist(), strict=True))
    with cuptiprof.profile(device=work.device, metrics=SEVERAL, strategy="replay") as prof:
        threads = [threading.Thread(target=f, args=(100,)) for f in (work.small, work.other)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        work.synchronize()
    result = prof.result()
    values: dict[str, list[float]] = {}
    for name, value in zip(map(str, result.metric_ranges["name"]), result.counters[INST].tolist(), strict=True):
        values.setdefault(name, []).append(value)
    return {
        "counted": len(result.metric_ranges),
        "events": result.metadata["counters"]["events"],
        "threads": len(set(result.metric_ranges["thread"].tolist())),
        "differing_from_one_thread": {n: sum(v != alone.get(n) for v in vs) for n, vs in values.items()},
    }


def counter_image(work: Work) -> dict[str, Any]:
    """A counter-data image of this chip with its values, to be evaluated where there is no GPU."""
    api = RawApi(work.device)
    metrics = [*TWO_PASSES, "sm__warps_active.avg.pct_of_peak_sustained_active"]
    ranges = Ranges(api, metrics, rows=4, max_ranges=4, chip=api.chip)
    ranges.start()
    work.small(1)
    work.busy()
    ranges.stop()
    ranges.decode()
    image = bytes(ranges.data)
    out = {
        "chip": api.chip,
        "cupti_version": api.version,
        "metrics": metrics,
        "values": [ranges.values(i) for i in range(ranges.count())],
        "image_bytes": len(image),
    }
    ranges.disable()
    packed = base64.b64encode(zlib.compress(image, 9)).decode()
    out["image_zlib_base64"] = packed if len(packed) < 400_000 else f"left out: {len(packed)} characters"
    return out


def cuda_graph_launches(work: Work) -> dict[str, Any]:
    """Is a graph launch inside a kernel-replay session counted, refused or harmful?

    Assumed: its kernels run once and are not counted.
    """
    if work.device != "cuda":
        return {"not applicable": "what the stand-in does is in its tests"}
    import torch

    x = torch.zeros(1 << 16, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(3):
            x.add_(1)
    graph.replay()
    torch.cuda.synchronize()
    x.zero_()
    api = RawApi(work.device)
    ranges = Ranges(api, TWO_PASSES, chip=api.chip)
    ranges.start()
    error = ""
    try:
        graph.replay()
        torch.cuda.synchronize()
    except RuntimeError as e:
        error = str(e)
    stopped = ranges.stop()
    dropped = ranges.decode()
    out = {
        "ranges": ranges.count(),
        "dropped": dropped,
        "all_submitted": int(stopped.all_submitted),
        "error": error,
        "value is 3": float(x[0]) == 3.0,
    }
    ranges.disable()
    return out


PROBES = [
    device_supported,
    records_of_counted_launches,
    two_threads,
    counter_image,
    cuda_graph_launches,
]
