"""The benchmark harness beside its peers: the same function, measured again and again by each, in turn.

What is asked: how far apart are the medians that one tool reports of one function (its spread), how long does it take to a result, and
do the tools agree. With a GPU: cuptiprof by kernel records, events and graphs; triton's do_bench and do_bench_cudagraph; torch.utils
.benchmark; flashinfer's CUPTI timing; NVBench's Python package (cuda.bench); and a bare loop with two events, the floor. Without one:
functions of the host by cuptiprof, torch.utils.benchmark, timeit, and a bare loop. Peers that are not installed are rows with the reason.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import cuptiprof
from benchmarks.common import arguments, finish
from cuptiprof.bench import Event, Graph, Kernel
from cuptiprof.errors import CuptiprofError
from cuptiprof.stats.statistics import median_interval, quantiles

Function = Callable[[], object]
Peer = Callable[[Function], float]
"""Measures a function; its median time, ns."""
BARE_CALLS = 100
GPU_FUNCTIONS = ("add 2^18", "mm 2048 bfloat16", "attention")


def host_functions() -> dict[str, Function]:
    """A short and a longer function of the host."""
    import torch

    torch.set_num_threads(1)
    a = torch.randn(128, 128)
    return {"sum of a range": lambda: sum(range(200)), "torch.mm 128 (CPU)": lambda: torch.mm(a, a)}


def gpu_functions() -> dict[str, Function]:
    """A kernel of a few microseconds, a matrix product, an attention of several kernels."""
    import torch
    import torch.nn.functional as F

    x = torch.randn(1 << 18, device="cuda")
    a = torch.randn(2048, 2048, device="cuda", dtype=torch.bfloat16)
    q = torch.randn(4, 16, 1024, 64, device="cuda", dtype=torch.bfloat16)
    functions = (lambda: x.add_(1.0), lambda: torch.mm(a, a), lambda: F.scaled_dot_product_attention(q, q, q))
    return dict(zip(GPU_FUNCTIONS, functions, strict=True))


def host_peers() -> dict[str, Peer | str]:
    """Who measures host time; a text says why one cannot."""

    def timeit_(f: Function) -> float:
        import timeit

        timer = timeit.Timer(f)
        number, _ = timer.autorange()
        return float(np.median(timer.repeat(number=number))) / number * 1e9

    def bare(f: Function) -> float:
        times = []
        for _ in range(BARE_CALLS):
            start = time.perf_counter_ns()
            f()
            times.append(time.perf_counter_ns() - start)
        return float(np.median(times))

    return {
        "cuptiprof (cpu)": lambda f: cuptiprof.bench(f, device="host", strategy="cpu").median,
        "torch.utils.benchmark": torch_benchmark,
        "timeit": timeit_,
        "bare loop": bare,
    }


def torch_benchmark(f: Function) -> float:
    """torch.utils.benchmark's median of blocked_autorange, ns."""
    from torch.utils.benchmark import Timer

    return float(Timer("f()", globals={"f": f}).blocked_autorange().median) * 1e9


def gpu_peers() -> dict[str, Peer | str]:
    """Who measures the GPU; a text says why one cannot."""
    import torch

    def ours(strategy: Any) -> Peer:
        return lambda f: cuptiprof.bench(f, strategy=strategy, device="cuda").median

    def bare(f: Function) -> float:
        pairs = []
        for _ in range(BARE_CALLS):
            first, second = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            first.record()
            f()
            second.record()
            pairs.append((first, second))
        torch.cuda.synchronize()
        return float(np.median([a.elapsed_time(b) for a, b in pairs])) * 1e6

    peers: dict[str, Peer | str] = {
        "cuptiprof (kernel)": ours(Kernel()),
        "cuptiprof (span)": ours(Kernel(span=True)),
        "cuptiprof (event)": ours(Event()),
        "cuptiprof (graph)": ours(Graph()),
        "torch.utils.benchmark": torch_benchmark,
        "bare events": bare,
    }
    peers |= optional("triton", _triton) | optional("flashinfer", _flashinfer) | optional("cuda.bench", _nvbench)
    return peers


def optional(module: str, make: Callable[[], dict[str, Peer]]) -> dict[str, Peer | str]:
    """The peers of a package, or one row with why there are none."""
    try:
        return dict(make())
    except (ImportError, AttributeError, OSError) as e:
        return {module: f"{type(e).__name__}: {e}"}


def _triton() -> dict[str, Peer]:
    from triton.testing import do_bench, do_bench_cudagraph

    return {
        "triton do_bench": lambda f: float(do_bench(f, return_mode="median")) * 1e6,
        "triton do_bench_cudagraph": lambda f: float(do_bench_cudagraph(f, return_mode="median")) * 1e6,
    }


def _flashinfer() -> dict[str, Peer]:
    from flashinfer.testing import bench_gpu_time_with_cupti

    return {"flashinfer (CUPTI)": lambda f: float(np.median(bench_gpu_time_with_cupti(f))) * 1e6}


def _nvbench() -> dict[str, Peer]:
    import cuda.bench as nvbench

    def measure(f: Function) -> float:
        import json
        import tempfile

        def body(state: Any) -> None:
            import torch

            def launch(launch: Any) -> None:
                with torch.cuda.stream(torch.cuda.ExternalStream(launch.get_stream().addressof())):
                    f()

            state.exec(launch)

        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out.json"
            nvbench.register(body)
            nvbench.run_all_benchmarks(["cuptiprof", "--json", str(out)])
            data = json.loads(out.read_text())
        for summary in data["benchmarks"][-1]["states"][0]["summaries"]:
            if summary["tag"] == "nv/cold/time/gpu/mean":
                return float(summary["data"][0]["value"]) * 1e9
        raise ValueError("NVBench reported no GPU time")

    return {"NVBench (mean, cold)": measure}


def one(peer: Peer, function: Function) -> tuple[float, float]:
    """(median ns, seconds it took) of one measurement."""
    began = time.perf_counter()
    return peer(function), time.perf_counter() - began


def compare(functions: Mapping[str, Function], peers: Mapping[str, Peer | str], repeats: int, limit: float) -> Any:
    """Rounds of all peers in turn for each function; rows of function and peer. No round is begun after `limit` seconds."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    until = time.monotonic() + limit
    for i in range(repeats):
        for name, function in functions.items():
            for peer_name, peer in peers.items():
                row = rows.setdefault((name, peer_name), {"medians_ns": [], "seconds": []})
                if isinstance(peer, str) or "error" in row:
                    row.setdefault("error", peer)
                    continue
                try:
                    median, seconds = one(peer, function)
                except (CuptiprofError, RuntimeError, ValueError, TypeError, OSError) as e:
                    row["error"] = f"{type(e).__name__}: {e}"[:300]
                    continue
                row["medians_ns"].append(round(median, 2))
                row["seconds"].append(round(seconds, 4))
        if time.monotonic() > until and i >= 1:
            break
    return [
        {"function": f, "peer": p, **row, **summary(row["medians_ns"], row["seconds"])} for (f, p), row in rows.items()
    ]


def summary(medians: list[float], seconds: list[float]) -> dict[str, float]:
    """Median of the medians with its interval, their spread (largest less smallest, and quartiles, over the median, in %), seconds
    to a result."""
    if not medians:
        return {}
    i = median_interval(medians)
    q1, q3 = quantiles(medians, [0.25, 0.75])
    return {
        "median_ns": round(i.median, 2),
        "low_ns": round(i.low, 2),
        "high_ns": round(i.high, 2),
        "confidence": round(i.confidence, 4),
        "range_percent": round(100 * (max(medians) - min(medians)) / i.median, 3),
        "quartiles_percent": round(100 * float(q3 - q1) / i.median, 3),
        "seconds_to_result": round(float(np.median(seconds)), 4),
    }


def plot(rows: list[dict[str, Any]], path: Path, title: str) -> None:
    """Each reported median as a dot, relative to the median of all tools, one panel a function."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    functions = list(dict.fromkeys(r["function"] for r in rows))
    figure, axes = plt.subplots(1, len(functions), figsize=(4.6 * len(functions), 3.2), sharey=True, squeeze=False)
    for axis, function in zip(axes[0], functions, strict=True):
        mine = [r for r in rows if r["function"] == function and r["medians_ns"]]
        middle = float(np.median([r["median_ns"] for r in mine]))
        for y, row in enumerate(mine):
            x = np.array(row["medians_ns"]) / middle
            axis.plot(x, np.full(len(x), y), "o", markersize=4, alpha=0.6)
        axis.set_yticks(range(len(mine)), [r["peer"] for r in mine])
        axis.axvline(1, color="0.7", linewidth=1)
        axis.set_title(f"{function}: {middle / 1000:.3g} us", fontsize=9)
        axis.set_xlabel("reported median / median of all tools")
    figure.suptitle(title, fontsize=9)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--device", choices=("cuda", "host"), default="host")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--limit", type=float, default=240, metavar="SECONDS", help="begin no round after so long")
    parser.add_argument("--plot", type=Path, help="draw the reported medians there (SVG or PNG)")
    options = parser.parse_args()
    on_gpu = options.device == "cuda"
    functions, peers = (gpu_functions(), gpu_peers()) if on_gpu else (host_functions(), host_peers())
    rows = compare(functions, peers, options.repeats, options.limit)
    environment = cuptiprof.bench(lambda: None, device=options.device, strategy="cpu", max_seconds=0.1).environment
    data = {
        "benchmark": "harness_peers",
        "device": options.device,
        "simulated": False,
        "environment": environment,
        "rows": rows,
    }
    finish(data, options.out)
    if options.plot is not None:
        where = environment["chip"] or f"host only, no GPU ({environment['cpu']})"
        plot(rows, options.plot, f"{options.repeats} measurements by each tool, {where}")


if __name__ == "__main__":
    main()
