"""What counters cost: us per counted kernel, on its thread and altogether, piece by piece; per region, sampling's effect on a step, unselected launches, start and stop.

Cases of one question run in turn, round by round, and ratios are to plain tracing in the same rounds. On the stand-in the
numbers are the profiler's own host cost and nothing else; the JSON says so.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cuptiprof
from benchmarks.common import arguments, finish, machine
from benchmarks.counter_sets import ONE_PASS, metrics_of
from benchmarks.gpu_work import STAND_IN, Work, gpu_name, instant_waits, make_work
from benchmarks.memory import resident
from benchmarks.rounds import Budget, Case, Row, rounds_of

LAUNCHES = {"cuda": 200, "sim": 2000}
REGIONS, LAUNCHES_IN_REGION = 100, 5
BURSTS, UNSELECTED, SELECTED = 10, 990, 10
STEP_SECONDS = 0.15
EVALUATE = "cuptiProfilerHostEvaluateToGpuValues"
# us of a call, and of each range in it. No number of any of them is public: these are guesses, to show which thread pays
# for what; `pieces` measures them.
ASSUMED_US = {
    "cuptiRangeProfilerSetConfig": (200, 0),
    "cuptiRangeProfilerCounterDataImageInitialize": (50, 0),
    "cuptiRangeProfilerStart": (50, 0),
    "cuptiRangeProfilerStop": (50, 0),
    "automatic range": (20, 0),
    "cuptiRangeProfilerDecodeData": (200, 5),
    EVALUATE: (30, 0),
}


def session(work: Work, body: Callable[[], Any], **keywords: Any) -> tuple[Row, cuptiprof.Result, Any]:
    """Milliseconds of start, body and stop; the result; what the body returned."""
    keywords.setdefault("activities", ["kernel"])
    times = [time.perf_counter()]
    prof = cuptiprof.profile(device=work.device, **keywords).start()
    times.append(time.perf_counter())
    value = body()
    times.append(time.perf_counter())
    result = prof.stop()
    times.append(time.perf_counter())
    start, inside, stop = (1e3 * (b - a) for a, b in itertools.pairwise(times))
    return {"start_ms": start, "inside_ms": inside, "stop_ms": stop}, result, value


def kernels(work: Work, sets: dict[str, list[str]], budget: Budget) -> dict[str, Any]:
    """(a) one pass direct, (b) replay, (c) iterate: us per counted kernel, launch to result."""
    launches = LAUNCHES[work.device]

    def case(**keywords: Any) -> Case:
        def run() -> Row:
            def body() -> None:
                work.small(launches)
                work.synchronize()

            row, result, _ = session(work, body, **keywords)
            if keywords:
                counters = result.metadata["counters"]
                row["passes"] = counters["passes"]
                row["uncounted"] = result.losses["uncounted"]
                row["rows"] = len(result.metric_ranges)
            row["us_per_kernel"] = 1e3 * (row["inside_ms"] + row["stop_ms"]) / launches
            return row

        return run

    cases = {"tracing": case()}
    for name, metrics in sets.items():
        cases[f"{'direct' if name == 'one pass' else 'replay'}, {name}"] = case(metrics=metrics, strategy="replay")
        if name != "one pass":
            cases[f"iterate, {name}"] = case(metrics=metrics, strategy="iterate")
    return rounds_of(cases, budget, "tracing", "us_per_kernel", 1e3)


def launching_thread(work: Work, budget: Budget) -> dict[str, Any]:
    """us that each launch keeps its thread, one pass; what is done on another thread shows in stop_ms only.

    On the stand-in once more with ASSUMED_US, and with those but evaluation.
    """
    launches = LAUNCHES[work.device]

    def body() -> tuple[float, float]:
        each = []
        for _ in range(launches):
            start = time.perf_counter_ns()
            work.small(1)
            each.append((time.perf_counter_ns() - start) / 1e3)
        return statistics.mean(each), statistics.median(each)

    def case(costs: dict[str, tuple[float, float]], **keywords: Any) -> Case:
        def run() -> Row:
            with taking(work.device, costs):
                row, result, (mean, median) = session(work, body, **keywords)
            row |= {"us_per_launch": mean, "median_us": median, "uncounted": result.losses["uncounted"]}
            return row

        return run

    counted: dict[str, Any] = {"metrics": ONE_PASS, "strategy": "replay"}
    cases = {"tracing": case({}), "counted": case({}, **counted)}
    if work.device == "sim":
        without = {name: us for name, us in ASSUMED_US.items() if name != EVALUATE}
        cases["counted, calls take as assumed"] = case(ASSUMED_US, **counted)
        cases["counted, evaluation takes nothing"] = case(without, **counted)
    return rounds_of(cases, budget, "tracing", "us_per_launch", 1e3)


@contextlib.contextmanager
def taking(device: str, costs: dict[str, tuple[float, float]]) -> Iterator[None]:
    """Calls of the stand-in take so many us, and so many for each range."""
    if not costs or device != "sim":
        yield
        return
    from cuptiprof.sim.sim_device import Fault, SimDevice

    sim = SimDevice()
    for name, (call, of_range) in costs.items():
        sim.inject(Fault.CALL_TIME, name, a=round(1e3 * call), b=round(1e3 * of_range))
    try:
        yield
    finally:
        sim.clear_faults()


def regions(work: Work, budget: Budget) -> dict[str, Any]:
    """us per region of five launches, traced and measured as a range."""

    def case(**keywords: Any) -> Case:
        def body() -> None:
            for _ in range(REGIONS):
                with cuptiprof.region("measured"):
                    work.small(LAUNCHES_IN_REGION)
            work.synchronize()

        def run() -> Row:
            row, result, _ = session(work, body, **keywords)
            row["us_per_region"] = 1e3 * (row["inside_ms"] + row["stop_ms"]) / REGIONS
            row["measured"] = len(result.metric_ranges)
            return row

        return run

    return rounds_of(
        {"tracing": case(), "range, one pass": case(metrics=ONE_PASS, strategy="range")}, budget, "tracing", "us_per_region", 1e3
    )  # fmt: skip


def sampling(work: Work, budget: Budget) -> dict[str, Any]:
    """ms per step under samples of three intervals."""

    def body() -> float:
        until = time.perf_counter() + STEP_SECONDS
        start, steps = time.perf_counter(), 0
        while time.perf_counter() < until:
            work.step()
            steps += 1
        return 1e3 * (time.perf_counter() - start) / steps

    def case(**keywords: Any) -> Case:
        def run() -> Row:
            row, result, step = session(work, body, **keywords)
            row["step_ms"] = step
            row["samples"] = int((result.metric_ranges["kind"] == 4).sum())
            row["overflows"] = result.losses["sample_overflows"]
            return row

        return run

    cases = {"no session": lambda: {"step_ms": body()}, "tracing": case()}
    for interval in ("1ms", "100us", "20us"):
        cases[f"samples every {interval}"] = case(metrics=ONE_PASS, strategy="sample", sampling_interval=interval)
    return rounds_of(cases, budget, "tracing", "step_ms", 1e6)


def unselected(work: Work, budget: Budget) -> dict[str, Any]:
    """ns per launch that was not selected, when 1 % of launches are counted; the counted ones are timed apart."""

    def body() -> float:
        spent = 0.0
        for _ in range(BURSTS):
            with cuptiprof.region("counted"):
                work.small(SELECTED)
            work.synchronize()
            start = time.perf_counter_ns()
            work.other(UNSELECTED)
            spent += time.perf_counter_ns() - start
            work.synchronize()
        return spent / (BURSTS * UNSELECTED)

    def case(**keywords: Any) -> Case:
        def run() -> Row:
            row, result, ns = session(work, body, **keywords)
            row["ns_per_unselected_launch"] = ns
            row["counted"] = len(result.metric_ranges)
            return row

        return run

    cases = {"no session": lambda: {"ns_per_unselected_launch": body()}, "tracing": case()}
    cases["direct"] = case(metrics=ONE_PASS, strategy="replay", kernels=_in_region())
    cases["replay"] = case(metrics=[*ONE_PASS, "gld_efficiency"], strategy="replay", kernels=_in_region())
    return rounds_of(cases, budget, "tracing", "ns_per_unselected_launch", 1)


def _in_region() -> Any:
    from cuptiprof.filter.kernel_filter import KernelFilter

    return KernelFilter(regions="counted")


def start_and_stop(work: Work, budget: Budget) -> dict[str, Any]:
    """ms of start, of the first counted launch and of stop; with a plan in the cache and without.

    One launch is too short to be sampled: the warning that no sample came belongs to this question.
    """

    def body() -> float:
        start = time.perf_counter()
        work.small(1)
        work.synchronize()
        return 1e3 * (time.perf_counter() - start)

    with tempfile.TemporaryDirectory() as scratch:
        fresh = (str(Path(scratch) / str(i)) for i in itertools.count())

        def case(cache: Callable[[], str], **keywords: Any) -> Case:
            def run() -> Row:
                before = os.environ.get("XDG_CACHE_HOME")
                os.environ["XDG_CACHE_HOME"] = cache()
                try:
                    row, _, first = session(work, body, **keywords)
                finally:
                    if before is None:
                        del os.environ["XDG_CACHE_HOME"]
                    else:
                        os.environ["XDG_CACHE_HOME"] = before
                return {**row, "first_launch_ms": first, "all_ms": row["start_ms"] + first + row["stop_ms"]}

            return run

        kept = next(fresh)
        counted: dict[str, Any] = {"metrics": ONE_PASS, "strategy": "replay"}
        cases = {
            "tracing": case(lambda: kept),
            "direct, plan cached": case(lambda: kept, **counted),
            "direct, plan not cached": case(lambda: next(fresh), **counted),
            "sample, plan cached": case(lambda: kept, metrics=ONE_PASS, strategy="sample"),
        }
        return rounds_of(cases, budget, "tracing", "all_ms", 1e6)


def memory_of(device: str, counted: bool) -> dict[str, float]:
    """MB of this process before the session, in it and after it: in a process of its own."""
    work = make_work(device)
    out = {"before_mb": resident() / 1e6}
    keywords: dict[str, Any] = {"metrics": ONE_PASS, "strategy": "replay"} if counted else {}

    def body() -> float:
        work.small(1000)
        work.synchronize()
        return resident() / 1e6

    _, result, out["inside_mb"] = session(work, body, budget="64 MB", **keywords)
    out["rows"] = len(result.metric_ranges)
    del result
    out["after_mb"] = resident() / 1e6
    return {k: round(v, 1) for k, v in out.items()}


def memory(device: str) -> dict[str, Any]:
    """Both, each in a process of its own."""
    out: dict[str, Any] = {}
    for name in ("tracing", "direct"):
        command = [sys.executable, "-m", "benchmarks.counters", "--device", device, "--memory-of", name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        out[name] = json.loads(done.stdout) if done.returncode == 0 else {"error": done.stderr.strip()[-300:]}
    return out


def pieces(device: str) -> dict[str, Any]:
    """us of each call of CUPTI's that a counted launch consists of, in a process of its own: no session is in between."""
    command = [sys.executable, "-m", "benchmarks.probes", "cost_of_a_counted_launch", "--device", device]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        return {"error": done.stderr.strip()[-300:]}
    answer: dict[str, Any] = json.loads(done.stdout)["answer"]
    return answer


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--device", choices=("cuda", "sim"), default="sim")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=70, help="fewer rounds when they would take longer")
    parser.add_argument("--memory-of", choices=("tracing", "direct"), help="only this part, as JSON")
    options = parser.parse_args()
    if options.memory_of:
        with instant_waits(options.device):
            print(json.dumps(memory_of(options.device, options.memory_of == "direct")))
        return 0
    began = time.perf_counter()
    work = make_work(options.device)
    sets = {"one pass": ONE_PASS, "2 passes": metrics_of(options.device, 2), "8 passes": metrics_of(options.device, 8)}
    gpu = gpu_name(options.device)
    data: dict[str, Any] = {
        "machine": machine() | {"gpu": gpu},
        "benchmark": "counters",
        "device": options.device,
        "simulated": options.device == "sim",
        "note": STAND_IN if options.device == "sim" else "kernel times of the GPU are part of every number",
        "sets": sets,
        "assumed_us": ASSUMED_US if options.device == "sim" else None,
        "launches": LAUNCHES[options.device],
    }
    budget = Budget(options.rounds, options.seconds, 6)
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "kernels": lambda: kernels(work, sets, budget),
        "launching_thread": lambda: launching_thread(work, budget),
        "regions": lambda: regions(work, budget),
        "sampling": lambda: sampling(work, budget),
        "unselected": lambda: unselected(work, budget),
        "start_and_stop": lambda: start_and_stop(work, budget),
        "memory": lambda: memory(options.device),
        "pieces": lambda: pieces(options.device),
    }
    failed = 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for name, measure in parts.items():
            try:
                with contextlib.nullcontext() if name == "sampling" else instant_waits(options.device):
                    data[name] = measure()
            except cuptiprof.CuptiprofError as e:  # one that the hardware refuses leaves the others standing
                data[name] = {"error": f"{type(e).__name__}: {e}"}
                failed += 1
    data["warnings"] = sorted({str(w.message) for w in caught})
    data["seconds"] = round(time.perf_counter() - began, 1)
    finish(data, options.out)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
