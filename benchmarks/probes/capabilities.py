"""What the profiler claims to do, tried once each on the device at hand.

An answer's ``checks`` says of each claim ``True``, or in words what went wrong; docs/hardware.md is made from them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

import cuptiprof
from benchmarks import recorded_work
from benchmarks.gpu_work import Work
from benchmarks.probes.raw import INST
from cuptiprof.errors import CuptiprofError

TABLES = {
    "kernel": "kernels",
    "memcpy": "memcpys",
    "memset": "memsets",
    "runtime": "api_calls",
    "driver": "api_calls",
    "sync": "synchronizations",
    "event": "cuda_events",
    "memory": "memory",
    "memory_pool": "memory_pools",
    "overhead": "overhead",
    "graph": "graph_launches",
    "context": "contexts",
    "device": "devices",
    "stream": "streams",
}
STRATEGIES: dict[str, dict[str, Any]] = {
    "replay": {},
    "iterate": {},
    "range": {"regions": "counted"},
    "sample": {"sampling_interval": "100us"},
}
LAUNCHES = 50
Check = bool | str


def _more_work(device: str) -> Callable[[], None]:
    """What recorded_work lacks: events, allocations."""
    if device != "cuda":
        from cuptiprof.sim.sim_device import Op, SimDevice

        sim = SimDevice()

        def simulated() -> None:
            sim.call(Op.EVENT_RECORD, event=1, stream=7)
            sim.call(Op.SYNC_EVENT, event=1, stream=7)
            sim.call(Op.STREAM_CREATE, stream=77)
            sim.call(Op.ALLOC, bytes=4096, address=0x1000)
            sim.call(Op.FREE, bytes=4096, address=0x1000)

        return simulated
    import torch

    def on_gpu() -> None:
        event = torch.cuda.Event()
        event.record()
        event.synchronize()
        torch.cuda.empty_cache()
        kept = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")  # larger than any block of the cache
        torch.cuda.Stream().synchronize()
        del kept
        torch.cuda.empty_cache()

    return on_gpu


def activity_kinds(work: Work) -> dict[str, Any]:
    """Does each kind of activity give records, beside those of kernels and with nothing lost?

    Assumed: yes; "overhead" only where CUPTI had any, "memory_pool" with stream-ordered pools.
    """
    run, more = recorded_work.work(work.device), _more_work(work.device)
    run()
    checks: dict[str, Check] = {}
    rows: dict[str, int] = {}
    for kind, table in TABLES.items():
        try:
            with cuptiprof.profile(device=work.device, activities=["kernel", kind]) as prof:
                run()
                more()
            result = prof.result()
        except CuptiprofError as e:
            checks[kind] = str(e)
            continue
        rows[kind] = len(getattr(result, table))
        if result.losses:
            checks[kind] = result.losses.line()
        else:
            checks[kind] = rows[kind] > 0 or "no record came"
    return {"checks": checks, "rows": rows}


def regions_of_launches(work: Work) -> dict[str, Any]:
    """Has each kernel the region that was open on its launching thread, nested and in threads (which inherit it)?

    Assumed: yes.
    """
    prof = cuptiprof.profile(device=work.device, activities=["kernel"])

    def other_thread() -> None:
        with cuptiprof.region("thread"):
            work.other(LAUNCHES)

    with prof:
        work.small(1)
        thread = threading.Thread(target=other_thread)
        with cuptiprof.region("outer"):
            work.small(LAUNCHES)
            with cuptiprof.region("inner"):
                thread.start()
                work.small(LAUNCHES)
                thread.join()
        work.synchronize()
    result = prof.result()
    names, counts = np.unique(np.asarray(result.kernels["region"]).astype(str), return_counts=True)
    got = dict(zip(names.tolist(), counts.tolist(), strict=True))
    wanted = {"": 1, "outer": LAUNCHES, "outer/inner": LAUNCHES, "outer/inner/thread": LAUNCHES}
    checks: dict[str, Check] = {"callback": (got == wanted and not result.losses) or f"{got} {result.losses.line()}"}
    return {"checks": checks}


def strategies_of_counters(work: Work) -> dict[str, Any]:
    """Does each strategy of counters give a value for what it counts, and do they agree on executed instructions?

    Assumed: yes; samples are of the whole device, so that their instructions are not compared.
    """
    checks: dict[str, Check] = {}
    values: dict[str, list[float]] = {}
    for strategy, more in STRATEGIES.items():
        try:
            with cuptiprof.profile(device=work.device, metrics=[INST], strategy=strategy, **more) as prof:
                with cuptiprof.region("counted"):
                    work.small(4)
                    work.synchronize()
                if strategy == "sample":
                    for _ in range(5):
                        work.busy()
                    work.synchronize()
            counted = np.asarray(prof.result().counters[INST], np.float64)
        except (CuptiprofError, KeyError) as e:
            checks[strategy] = str(e)
            continue
        finite = counted[np.isfinite(counted)]
        values[strategy] = [float(v) for v in finite[:4]]
        checks[strategy] = bool(len(finite) and finite.max() > 0) or f"{len(counted)} values, none above 0"
    single = values.get("replay", [])
    if single and single[0] > 0:
        for strategy, total in (("iterate", single[0]), ("range", 4 * single[0])):
            if values.get(strategy) and values[strategy][0] != total:
                checks[strategy] = f"{values[strategy][0]:g} instructions, {total:g} by replay"
    return {"checks": checks, "instructions": values}


PROBES = [activity_kinds, regions_of_launches, strategies_of_counters]
