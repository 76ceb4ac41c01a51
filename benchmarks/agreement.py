"""Our numbers beside those of torch.profiler and ncu, per kernel and metric: python -m benchmarks.agreement

On a GPU: the same step, and the probes of ``cuptiprof verify``, under each tool in turn; times within 1 %, counts and rates
within 2 %, instruction and flop counts equal. Without one: recorded torch.profiler traces are played through the collector on the stand-in and every kernel must come
out as it was recorded. Exit 1 where two disagree.
"""

from __future__ import annotations

import gzip
import json
import math
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from benchmarks import agreement_probes
from benchmarks.agreement_compare import Kernel, Row, compare_each, compare_kernels, compare_metrics, read_ncu
from benchmarks.common import arguments, finish

ROOT = Path(__file__).resolve().parents[1]
TRACES = ("cuptiprof/sim/traces/train-v100", "tests/data/traces/alexnet-a100", "tests/data/traces/triton-a100")
ROUNDS = 5
NCU_TIMEOUT_S = 240
METRICS = [
    "sm__inst_executed.sum",
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "lts__t_sectors_op_read.sum",
]


def read_trace(path: Path) -> list[Kernel]:
    """Kernels of a torch.profiler trace, by a reader of ten lines that shares nothing with ours.

    Times are microseconds since 1970 with three decimals: too long for a double, so they are read as decimals.
    """
    raw = path.read_bytes()
    text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    events = json.loads(text, parse_float=Decimal)["traceEvents"]
    return [
        Kernel(e["name"], round(e["ts"] * 1000), round(e["dur"] * 1000), e["args"]["stream"], tuple(e["args"]["grid"]))
        for e in events
        if e.get("cat") == "kernel"
    ]


def kernels_of(result: Any) -> list[Kernel]:
    """Ours, with demangled names as torch.profiler shows them."""
    from cuptiprof import _core

    k = result.kernels
    columns = (k["name"], k["start"], k["end"], k["stream"], k["grid_x"], k["grid_y"], k["grid_z"])
    return [
        Kernel(_core.demangle(name), int(start), int(end - start), int(stream), (int(x), int(y), int(z)))
        for name, start, end, stream, x, y, z in zip(*columns, strict=True)
    ]


def aligned(ours: list[Kernel], theirs: list[Kernel]) -> list[Kernel]:
    """Ours on the other's clock: both start with the same kernel."""
    if not ours or not theirs:
        return ours
    shift = min(k.start for k in theirs) - min(k.start for k in ours)
    return [Kernel(k.name, k.start + shift, k.duration, k.stream, k.grid) for k in ours]


def on_recorded_traces() -> list[Row]:
    """The stand-in plays each trace; all kernels must come out of the collector as torch.profiler wrote them."""
    import cuptiprof

    rows = []
    for name in TRACES:
        path = ROOT / f"{name}.json.gz"
        with cuptiprof.profile(device=f"replay:{path}") as prof:
            pass
        theirs = read_trace(path)
        rows += compare_each(
            f"torch.profiler, {path.name.partition('.')[0]}",
            aligned(kernels_of(prof.result()), theirs),
            theirs,
            slack_ns=1,
        )
    return rows


def with_torch_profiler() -> list[Row]:
    """A step under each in turn, ROUNDS times; the medians of all rounds are compared."""
    import cuptiprof
    from benchmarks.agreement_work import make_step

    torch, step = make_step()
    for _ in range(3):
        step()
    ours: list[Kernel] = []
    theirs: list[Kernel] = []
    with tempfile.TemporaryDirectory() as folder:
        for i in range(ROUNDS):
            with cuptiprof.profile(activities=["kernel"]) as prof:
                step()
            ours += kernels_of(prof.result())
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as other:
                step()
            path = Path(folder) / f"{i}.json"
            other.export_chrome_trace(str(path))
            theirs += read_trace(path)
    return compare_kernels("torch.profiler", ours, theirs)


def run_ncu(
    program: str, metrics: Sequence[str], wrapped: Sequence[str], *more: str
) -> list[tuple[str, dict[str, float]]]:
    """(kernel name, {metric: value}) of each launch of `wrapped`, a module and its arguments; caches and clocks left as they are.

    Raises:
        ValueError: ncu failed or printed no table. OSError, subprocess.TimeoutExpired: it could not be run, or hung.
    """
    command = [program, "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none", "--cache-control", "none"]  # fmt: skip
    command += [*more, "--metrics", ",".join(metrics), sys.executable, "-m", *wrapped]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace", timeout=NCU_TIMEOUT_S)
    if done.returncode != 0:
        said = " ".join((done.stderr or done.stdout).split())
        raise ValueError(f"ncu ended with {done.returncode}: {said[-300:]}")
    return read_ncu(done.stdout, metrics)


def step_under_ncu(program: str) -> list[Row]:
    """One step of PyTorch, every kernel, METRICS."""
    import cuptiprof
    from benchmarks.agreement_work import make_step

    theirs = run_ncu(program, METRICS, ["benchmarks.agreement_work"], "--profile-from-start", "off")
    _, step = make_step()
    for _ in range(3):
        step()
    with cuptiprof.profile(metrics=METRICS, strategy="replay") as prof:
        step()
    return compare_metrics(metric_values(prof.result()), theirs)


def probes_under_ncu(program: str, device: str = "cuda", names: Sequence[str] | None = None) -> list[Row]:
    """The counted probes, each counter on the launches of the probes that state it; `names`: only these probes."""
    from cuptiprof import verify

    machine = verify.open_machine(device)
    work = agreement_probes.counted_work(machine, names)
    ours = agreement_probes.count_ours(machine, work)
    wrapped = ["benchmarks.agreement_probes", *(w.probe for w in work)]
    theirs = run_ncu(program, agreement_probes.all_counters(work), wrapped, "--kernel-name", agreement_probes.NCU_KERNELS)  # fmt: skip
    return agreement_probes.compare_probes(work, ours, theirs)


def metric_values(result: Any) -> list[tuple[str, dict[str, float]]]:
    """(kernel name, {metric: value}) of each launch that was counted, in order."""
    values: dict[int, dict[str, float]] = {}
    m = result.metrics
    for at, name, value in zip(m["range"], m["metric"], m["value"], strict=True):
        if math.isfinite(value):
            values.setdefault(int(at), {})[name] = float(value)
    return [(name, values.get(int(i), {})) for i, name in zip(result.metric_ranges["id"], result.metric_ranges["name"], strict=True)]  # fmt: skip


def measure(device: str) -> dict[str, Any]:
    """Every part that can run here; the others with the reason."""
    parts: dict[str, Callable[[], Iterable[Row]]] = {"recorded traces on the stand-in": on_recorded_traces}
    missing: dict[str, str] = {}
    if device == "cuda":
        parts["torch.profiler"] = with_torch_profiler
        ncu = shutil.which("ncu")
        if ncu:
            parts["ncu, probes"] = lambda: probes_under_ncu(ncu)
            parts["ncu, step"] = lambda: step_under_ncu(ncu)
        else:
            missing |= dict.fromkeys(("ncu, probes", "ncu, step"), "ncu is not installed")
    else:
        missing["torch.profiler"] = "needs a GPU; its recorded traces are compared instead"
        missing |= dict.fromkeys(("ncu, probes", "ncu, step"), "needs a GPU")
    rows: list[Row] = []
    for name, part in parts.items():
        try:
            rows += part()
        except Exception as e:  # one tool that fails must not cost the others
            missing[name] = f"failed: {type(e).__name__}: {e}"
    return {
        "benchmark": "agreement",
        "device": device,
        "simulated": device == "sim",
        "agrees": all(r.agrees for r in rows),
        "compared": len(rows),
        "missing": missing,
        "rows": [r.as_dict() for r in rows],
    }


def main() -> int:
    from cuptiprof.device.locate import driver_present

    parser = arguments(__doc__)
    parser.add_argument("--device", choices=("sim", "cuda"), help="default: cuda where there is a driver")
    options = parser.parse_args()
    data = measure(options.device or ("cuda" if driver_present() else "sim"))
    if data["simulated"]:
        print("Simulated: recorded traces through the collector; nothing here is a measurement of hardware.")
    print(f"{'':3} {'part':32} {'what':28} {'ours':>14} {'theirs':>14} {'difference':>10}  kernel")
    for r in data["rows"]:
        mark = "ok" if r["agrees"] else "NO"
        print(f"{mark:3} {r['part']:32} {r['what'][-28:]:28} {r['ours']:14.6g} {r['theirs']:14.6g} {r['difference']:10.2%}  {r['kernel'][:60]}")  # fmt: skip
    for name, reason in data["missing"].items():
        print(f"-   {name}: {reason}")
    if options.out is not None:
        finish(data, options.out)
    failed = any(reason.startswith("failed") for reason in data["missing"].values())
    return 0 if data["agrees"] and data["rows"] and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
