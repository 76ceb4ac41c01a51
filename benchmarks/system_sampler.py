"""What reading the system beside the kernels costs (docs/system.md): CPU time of one reading of a GPU and of the host, and of the threads
of a session at the default interval.

``python -m benchmarks.system_sampler [--device sim|cuda] [--seconds S]``; on the stand-in NVML answers at once: what is left is ours.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import threading
import time
from pathlib import Path

import cuptiprof
from cuptiprof.data.system_counters import HOST
from cuptiprof.device.devices import open_device
from cuptiprof.device.host_counters import HostCounters
from cuptiprof.device.nvml_counters import nvml_gpus

_READINGS = 1000
_THREADS = ("cuptiprof-sys", "cuptiprof-pcie", "cuptiprof-xid")


def reading_us(spec: str) -> dict[str, float]:
    """Median CPU time of one reading, us."""
    (gpu, *_) = nvml_gpus(open_device(spec).nvml())
    host = HostCounters()
    took: dict[str, list[int]] = {"a GPU": [], "the host": []}
    for _ in range(_READINGS):
        for name, read in (("a GPU", gpu.read), ("the host", host.read)):
            began = time.thread_time_ns()
            list(read(time.monotonic_ns()))
            took[name].append(time.thread_time_ns() - began)
    return {name: statistics.median(of) / 1000 for name, of in took.items()}


def threads_percent(spec: str, seconds: float) -> tuple[dict[str, float], int]:
    """CPU time of each of our threads at the default interval, % of one CPU, and how many GPUs they read."""
    with cuptiprof.profile(device=spec, system=True) as session:
        ours = {t.name: t.native_id for t in threading.enumerate() if t.name in _THREADS}
        began, before = time.monotonic(), {name: _cpu_ns(tid) for name, tid in ours.items()}
        time.sleep(seconds)
        took = time.monotonic() - began
        percent = {name: 100 * (_cpu_ns(tid) - before[name]) / 1e9 / took for name, tid in ours.items()}
    devices = set(session.result().system_samples["device"].tolist()) - {HOST}
    return percent, len(devices)


def _cpu_ns(tid: int | None) -> int:
    return int(Path(f"/proc/self/task/{tid}/schedstat").read_text().split()[0])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="sim", help="sim or cuda")
    parser.add_argument("--seconds", type=float, default=10.0)
    arguments = parser.parse_args()
    mark = "" if arguments.device == "cuda" else " (SIMULATED)"
    for name, us in reading_us(arguments.device).items():
        print(f"one reading of {name}: {us:.1f} us{mark}")
    percent, gpus = threads_percent(arguments.device, arguments.seconds)
    for name, of in percent.items():
        print(f"{name}: {of:.3f} % of a CPU, {gpus} GPU(s){mark}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
