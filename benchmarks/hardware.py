"""Everything that wants a GPU, in one command: python -m benchmarks.hardware --out DIR

Runs the doctor, the gpu tests, the demo and the transformer example, and an empty-kernel launch loop with and without us; writes
DIR/report.json. A part that fails is reported as failed and the rest goes on. Without a GPU it says so and runs on the stand-in,
marked simulated.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.common import arguments, machine, spread
from cuptiprof.locate import driver_present

ROOT = Path(__file__).resolve().parents[1]
PART_TIMEOUT_S = 150


def part(name: str, command: list[str], log: Path) -> dict[str, Any]:
    """Run one part in a process of its own; its output goes to the log."""
    began = time.perf_counter()
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=PART_TIMEOUT_S, errors="replace"
        )
        status, output = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as e:
        status, output = -1, f"timed out after {PART_TIMEOUT_S} s\n{e.stdout or ''}"
    with log.open("a") as f:
        f.write(f"== {name}: {' '.join(command)} -> {status}\n{output}\n")
    return {"part": name, "ok": status == 0, "status": status, "seconds": round(time.perf_counter() - began, 1), "tail": output.strip().splitlines()[-3:]}  # fmt: skip


def launch_loop(device: str, rounds: int = 9, launches: int = 20_000) -> dict[str, Any]:
    """ns a launch of an empty-ish kernel: nothing, kernels only, and everything we collect by default."""
    import cuptiprof

    if device == "cuda":
        import torch

        x = torch.ones(1, device="cuda")

        def work() -> None:
            for _ in range(launches):
                x.add_(1)
            torch.cuda.synchronize()
    else:
        from cuptiprof.sim.device import Op, SimDevice

        sim = SimDevice()
        ops = sim.ops(launches, Op.KERNEL, name="k", duration_ns=10)

        def work() -> None:
            sim.run(ops)

    def timed() -> float:
        start = time.perf_counter_ns()
        work()
        return (time.perf_counter_ns() - start) / launches

    def under(**options: Any) -> float:
        with cuptiprof.profile(device=device, **options) as prof:
            took = timed()
        lost = prof.result().losses
        losses.append(dict(lost) if lost else {})
        return took

    losses: list[dict[str, int]] = []
    samples: dict[str, list[float]] = {"nothing": [], "kernels": [], "default": [], "after": []}
    timed()
    for _ in range(rounds):
        samples["nothing"].append(timed())
        samples["kernels"].append(under(activities=["kernel"]))
        samples["default"].append(under())
        samples["after"].append(timed())
    return {
        "unit": "ns per launch",
        "launches": launches,
        **{k: spread(v) for k, v in samples.items()},
        "losses": [x for x in losses if x],
    }


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--launch-loop", choices=("cuda", "sim"), help="only this part, as JSON (used by the report)")
    options = parser.parse_args()
    if options.launch_loop:
        print(json.dumps(launch_loop(options.launch_loop)))
        return 0
    out = options.out or Path("out/hardware")
    out.mkdir(parents=True, exist_ok=True)
    log = out / "log.txt"
    log.write_text("")
    device = "cuda" if driver_present() else "sim"
    if device == "sim":
        print("No NVIDIA driver here: running on the simulated device. Nothing below is a measurement of hardware.")
    python = sys.executable
    tests = ["tests/gpu"] if device == "cuda" else ["tests/sim"]
    parts = [
        part("doctor", [python, "-m", "cuptiprof", "doctor", "--json", "--device", device], log),
        part("tests", [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests], log),
        part("demo", [python, "-m", "cuptiprof", "demo", "--limit", "5"], log),
        part("example", [python, "-m", "cuptiprof", "run", "--device", device, "-f", "-o", str(out / "example.json.gz"), "examples/train_transformer.py", "--steps", "5"], log),
        part("launch_loop", [python, "-m", "benchmarks.hardware", "--launch-loop", device], log),
    ]  # fmt: skip
    report: dict[str, Any] = {"machine": machine(), "simulated": device == "sim", "parts": parts}
    for name, key in (("doctor", "doctor"), ("launch_loop", "launch_loop")):
        text = log.read_text().partition(f"== {name}: ")[2].partition("\n")[2].partition("\n== ")[0]
        try:
            report[key] = json.loads(text[text.index("{") : text.rindex("}") + 1])
        except ValueError:
            report[key] = None
    (out / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    for p in parts:
        print(f"{'ok    ' if p['ok'] else 'FAILED'} {p['part']:12} {p['seconds']:6.1f} s  {p['tail'][-1:] or ''}")
    print(f"written: {out / 'report.json'}")
    return 0 if all(p["ok"] for p in parts) else 1


if __name__ == "__main__":
    sys.exit(main())
