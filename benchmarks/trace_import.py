"""From a torch.profiler trace to a Result, beside json.loads and msgspec, which only parse the same bytes, and Holistic Trace Analysis.

Bars: 0.1 of HTA from the file to its table, which needs an older numpy and so a Python of its own (``--hta PYTHON``, with
HolisticTraceAnalysis 0.5.0); 0.2 of json.loads. Times are CPU time of the process, which other programs on the machine disturb less; the clock's are
beside them. What 100 MB take, and that time and memory grow with the file, is measured in processes of their own: bars 3 s,
1.5 GB, and three times the text.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

import cuptiprof
from benchmarks.common import arguments, finish, in_turn, ratio, significant, summary

TRACE = Path(cuptiprof.__file__).parent / "sim" / "traces" / "train-v100.json.gz"
MS, MB = 1e6, 1 << 20
_FIRST_TIMES = 6
SIZES = (25, 50, 100, 200)  # MB of text

_HTA = """
import json, logging, sys, time, warnings
warnings.simplefilter("ignore")
from hta.common.trace_parser import parse_trace_dataframe
from hta.configs.parser_config import ParserConfig
logging.disable(logging.CRITICAL)
cpu = time.process_time()
parse_trace_dataframe(sys.argv[1], ParserConfig.get_default_cfg())
print(json.dumps({"cpu_s": time.process_time() - cpu}))
"""
_PARSED_UP_TO = 100  # MB: json.loads of more takes long
_JSON = """
import json, sys, time
text = open(sys.argv[1], "rb").read()
cpu = time.process_time()
parsed = json.loads(text)
print(json.dumps({"json.loads cpu_s": time.process_time() - cpu}))
"""
_CHILD = """
import json, re, sys, time
import cuptiprof, cuptiprof.io.kineto, cuptiprof.io.runs
def peak():  # not ru_maxrss, which a process has from its parent
    return 1024 * int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1])
before, wall, cpu = peak(), time.perf_counter(), time.process_time()
result = cuptiprof.open(sys.argv[1])
print(json.dumps({
    "wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu, "peak_bytes": peak() - before,
    "kernels": len(result.kernels), "operators": len(result.operators), "lost": sum(result.losses.values()),
}))
"""


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--hta", metavar="PYTHON", help="an interpreter with HolisticTraceAnalysis 0.5.0")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text = gzip.decompress(TRACE.read_bytes())
        plain = Path(folder) / "trace.json"
        plain.write_bytes(text)
        cases: dict[str, Callable[[], object]] = {
            "json.loads": lambda: json.loads(text),
            "msgspec": lambda: msgspec.json.decode(text),
            "cuptiprof, file": lambda: cuptiprof.open(plain),
            "cuptiprof, gzip file": lambda: cuptiprof.open(TRACE),
        }
        found = in_turn({name: _timed(case) for name, case in cases.items()}, options.rounds, seconds=60)
        out: dict[str, Any] = {}
        for name in cases:
            out[name] = {
                "cpu": summary(found[name].samples, MS),
                "wall": summary(found[name].reported["wall_ns"], MS),
            }
            if name != "json.loads":
                out[name]["cpu to json.loads (bar 0.2)"] = ratio(found.verdict(name, "json.loads"))
        first_times = _first_times({"file": plain, "gzip file": TRACE}, options.hta)
        by_size = {}
        for size in SIZES:
            file = Path(folder) / f"{size}.json"
            _write(file, size * MB)
            row = _in_a_child(_CHILD, file)
            row["peak to text (bar 3)"] = row["peak_bytes"] / file.stat().st_size
            if size <= _PARSED_UP_TO:
                row |= _in_a_child(_JSON, file)
                row["cpu to json.loads (bar 0.2)"] = row["cpu_s"] / row["json.loads cpu_s"]
            by_size[f"{size} MB"] = {name: significant(float(value)) for name, value in row.items()}
            file.unlink()
    finish(
        {
            "benchmark": "trace_import",
            "unit": "ms",
            "train-v100": {"bytes": len(text), "gzip_bytes": TRACE.stat().st_size, **out},
            "train-v100, first time in a process, s of CPU": first_times,
            "made, in processes of their own": by_size,
        },
        options.out,
    )


def _timed(work: Callable[[], object]) -> Callable[[], dict[str, float]]:
    def run() -> dict[str, float]:
        wall, cpu = time.perf_counter_ns(), time.process_time_ns()
        made = work()
        row = {"ns": float(time.process_time_ns() - cpu), "wall_ns": float(time.perf_counter_ns() - wall)}
        del made  # to throw it away is not in it
        return row

    return run


def _first_times(files: dict[str, Path], hta: str | None) -> dict[str, Any]:
    """One process after the other, in turn: medians, and ours to HTA's."""
    out: dict[str, Any] = {}
    for name, file in files.items():
        rows: dict[str, list[float]] = {}
        for _ in range(_FIRST_TIMES):
            rows.setdefault("cuptiprof", []).append(_in_a_child(_CHILD, file)["cpu_s"])
            if hta:
                rows.setdefault("HTA", []).append(_in_a_child(_HTA, file, hta)["cpu_s"])
        out[name] = {who: summary(values) for who, values in rows.items()}
        if hta:
            out[name]["cuptiprof to HTA (bar 0.1)"] = significant(
                out[name]["cuptiprof"]["median"] / out[name]["HTA"]["median"]
            )
    return out


def _in_a_child(code: str, file: Path, python: str = sys.executable) -> dict[str, float]:
    done = subprocess.run([python, "-c", code, str(file)], check=True, capture_output=True, text=True)
    row: dict[str, float] = json.loads(done.stdout)
    return row


def _write(file: Path, size: int) -> None:
    """Launches as PyTorch's: operators in each other, the call, the kernel and its arrows, a step every 1,000."""
    with file.open("w") as f:
        f.write('{"schemaVersion": 1, "baseTimeNanoseconds": 1700000000000000000, "traceEvents": [\n')
        i = 0
        while f.tell() < size:
            f.write("".join(_launch(n) for n in range(i, i + 1000)))
            i += 1000
            f.write(_slice("user_annotation", f"ProfilerStep#{i // 1000}", (i - 1000) * 20, 20_000, 1, "") + ",\n")
        f.write('{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}}]}')


def _launch(i: int) -> str:
    t, external = i * 20, f'"External id": {2 * i + 1}'
    shapes = f'"Input Dims": [[{i % 64}, 1024], [1024, 4096], []], "Input type": ["float", "float", "Scalar"]'
    arrow = f'"id": {i + 1}, "pid": 1, "tid": 1, "ts": {t + 3}.250, "cat": "ac2g", "name": "ac2g"'
    events = (
        _slice("cpu_op", "aten::linear", t, 12, 1, f'{external}, "Sequence number": {i}, {shapes}'),
        _slice("cpu_op", "aten::addmm", t + 1, 10, 1, f'"External id": {2 * i + 2}, {shapes}'),
        _slice("cuda_runtime", "cudaLaunchKernel", t + 3, 4, 1, f'{external}, "cbid": 211, "correlation": {i + 1}'),
        _slice(
            "kernel",
            f"void gemm_kernel_number<{i % 40}, float>(float const*, float*)",
            t + 9,
            8,
            7,
            f'{external}, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": {i + 1}, '
            f'"registers per thread": 32, "shared memory": 0, "grid": [{i % 100 + 1}, 1, 1], "block": [128, 1, 1]',
        ),
        f'{{"ph": "s", {arrow}}}',
        f'{{"ph": "f", "bp": "e", {arrow}}}',
    )
    return ",\n".join(events) + ",\n"


def _slice(category: str, name: str, ts: int, dur: int, tid: int, args: str) -> str:
    return (
        f'{{"ph": "X", "cat": "{category}", "name": "{name}", "pid": 1, "tid": {tid}, "ts": {ts}.125, "dur": {dur}.500, '
        f'"args": {{{args}}}}}'
    )


if __name__ == "__main__":
    main()
