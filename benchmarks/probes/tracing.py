"""Activity buffers, graph nodes and clocks: what CUPTI does to a program that is traced."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import cuptiprof
from benchmarks import clock_drift
from benchmarks.gpu_work import Work
from benchmarks.overhead import native
from benchmarks.overhead.conditions import CONCURRENT_KERNEL

SIZES = tuple(1 << i for i in range(16, 24))  # 64 KiB to 8 MiB
TIMED = 20_000
STALL_NS = 50_000
POOL = 32 << 20  # the bytes of all buffers together are the same for every size
GRAPH_NODES, GRAPH_RUNS = 3, 4
DRIFT_SECONDS = 8.0


def _timed_launches(work: Work, library: Any) -> Callable[[int], npt.NDArray[np.integer[Any]]]:
    """A function that makes so many launches and returns each one's time on the host, ns."""
    if work.device == "cuda":
        kernel = native.EmptyKernel(library)

        def timed(count: int) -> npt.NDArray[np.integer[Any]]:
            ns = kernel.launch_timed(count)
            kernel.synchronize()
            return ns

        return timed
    from cuptiprof.sim.sim_device import Op, SimDevice

    sim = SimDevice()
    launch = sim.prepare(sim.ops(1, Op.KERNEL, name="_Z5emptyv", duration_ns=10))

    def simulated(count: int) -> npt.NDArray[np.integer[Any]]:
        clock = time.perf_counter_ns
        ns = np.empty(count, np.int64)
        for i in range(count):
            start = clock()
            launch()
            ns[i] = clock() - start
        sim.synchronize()
        return ns

    return simulated


def _figures(ns: npt.NDArray[np.integer[Any]]) -> dict[str, Any]:
    return {
        "ns_per_launch": round(float(ns.mean()), 1),
        "median_ns": round(float(np.median(ns)), 1),
        "p99_ns": round(float(np.percentile(ns, 99)), 1),
        "longest_us": round(float(ns.max()) / 1e3, 1),
        f"launches_over_{STALL_NS // 1000}_us": int((ns > STALL_NS).sum()),
    }


def buffer_size_against_stalls(work: Work) -> dict[str, Any]:
    """How does the size of activity buffers (64 KiB to 8 MiB) change what a launch costs, at the median, p99 and worst?

    Assumed: buffers of 256 KiB stall nobody; larger ones do when CUPTI clears them on the launching thread.
    """
    from benchmarks.overhead.__main__ import libcupti_path

    library = native.build()
    if isinstance(library, str):
        return {"not applicable": library}
    timed = _timed_launches(work, library)
    timed(1000)
    out: dict[str, Any] = {"launches": TIMED, "nothing": _figures(timed(TIMED))}
    for size in SIZES:
        bare = native.BareCollector(library, libcupti_path(work.device), CONCURRENT_KERNEL, size)
        timed(1000)
        bare.start()
        figures = _figures(timed(TIMED))
        received = bare.stop()
        bare_line = figures | {"buffers_requested": bare.requested, "bytes": received}
        with cuptiprof.profile(
            device=work.device, activities=["kernel"], buffer_size=size, buffer_count=max(POOL // size, 4)
        ) as prof:
            ours = _figures(timed(TIMED))
        result = prof.result()
        ours |= {"records": len(result.kernels), "losses": {k: v for k, v in dict(result.losses).items() if v}}
        out[f"{size >> 10} KiB"] = {"bare collector": bare_line, "cuptiprof": ours}
    out["summary"] = _summary(out)
    return out


def _summary(answer: dict[str, Any]) -> str:
    """For a table: the median, p99 and worst of each size, through us."""
    sizes = [(k, v["cuptiprof"]) for k, v in answer.items() if k.endswith("KiB")]
    lines = (f"{k} {o['median_ns']:.0f} / {o['p99_ns']:.0f} ns / {o['longest_us']:.0f} us" for k, o in sizes)
    lost = sum(sum(o["losses"].values()) for _, o in sizes)
    plain = answer["nothing"]
    return (
        f"median / p99 / worst, untraced {plain['median_ns']:.0f} / {plain['p99_ns']:.0f} ns / {plain['longest_us']:.0f} us; "
        f"{'; '.join(lines)}; {lost} lost"
    )


def _graph_runs(device: str) -> Callable[[], None]:
    """Makes a graph of three kernels and runs it four times; called inside the session."""
    if device != "cuda":
        from cuptiprof.sim.sim_device import Op, SimDevice

        sim = SimDevice()

        def simulated() -> None:
            sim.call(Op.GRAPH_BEGIN_CAPTURE, graph_id=5)
            for i in range(GRAPH_NODES):
                sim.launch(f"_Z4node{i}v")
            sim.call(Op.GRAPH_END_CAPTURE, graph_id=5)
            for _ in range(GRAPH_RUNS):
                sim.call(Op.GRAPH_LAUNCH, graph_id=5)
            sim.synchronize()

        return simulated
    import torch

    x = torch.ones(1 << 12, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x.add_(1).sin_().exp_()
    side.synchronize()

    def on_gpu() -> None:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            x.add_(1).sin_().exp_()
        for _ in range(GRAPH_RUNS):
            graph.replay()
        torch.cuda.synchronize()

    return on_gpu


def graph_node_records(work: Work) -> dict[str, Any]:
    """Which records has a graph of three kernels run four times: how many, their names, node, graph and correlation IDs?

    Assumed: one record a node and run, three node IDs, one graph ID, four correlation IDs; with "graph" one record a run and none a node.
    """
    run = _graph_runs(work.device)
    with cuptiprof.profile(device=work.device, activities=["kernel"]) as prof:
        run()
    result = prof.result()
    k = result.kernels
    nodes = {str(n): sorted(set(map(str, k["name"][k["graph_node_id"] == n])))[:2] for n in sorted(set(k["graph_node_id"].tolist()))[:8]}  # fmt: skip
    out: dict[str, Any] = {
        "kernel_records": len(k),
        "node_ids": len(set(k["graph_node_id"].tolist()) - {0}),
        "graph_ids": len(set(k["graph_id"].tolist()) - {0}),
        "correlation_ids": len(set(k["correlation_id"].tolist())),
        "names_of_nodes": nodes,
        "launches_seen": result.metadata["launches"]["launches"],
        "losses": {name: count for name, count in dict(result.losses).items() if count},
    }
    with cuptiprof.profile(device=work.device, activities=["kernel", "graph"]) as prof:
        run()
    traced = prof.result()
    out["with graph"] = {"graph_launches": len(traced.graph_launches), "kernel_records": len(traced.kernels)}
    out["as assumed"] = (
        out["kernel_records"] == GRAPH_NODES * GRAPH_RUNS
        and (out["node_ids"], out["graph_ids"], out["correlation_ids"]) == (GRAPH_NODES, 1, GRAPH_RUNS)
        and out["with graph"] == {"graph_launches": GRAPH_RUNS, "kernel_records": 0}
    )
    return out


def timestamps_against_raw_clock(work: Work) -> dict[str, Any]:
    """How far do kernel records and CUPTI's clock drift from CLOCK_MONOTONIC_RAW?

    Assumed: kernel records are on CLOCK_MONOTONIC, which is slewed against the raw clock, by some ppm. An hour of it:
    ``python -m benchmarks.clock_drift --seconds 3600``.
    """
    return clock_drift.measure(work.device, DRIFT_SECONDS if work.device == "cuda" else 2.0)


PROBES = [buffer_size_against_stalls, graph_node_records, timestamps_against_raw_clock]
