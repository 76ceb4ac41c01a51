"""What profiling costs, ours beside the floor and the peers: python -m benchmarks.overhead [--device sim|cuda] [--quick]

In turn in one process ("nothing" runs in another that never imports cuptiprof): ns per launch, step time and GPU time
against "imported", time to the result, memory, and residue (step time after the stop over before the start).
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any

from benchmarks.common import arguments, finish
from benchmarks.overhead import native, table
from benchmarks.overhead.conditions import Condition, floors, imported, missing, our_conditions
from benchmarks.overhead.nothing import Elsewhere
from benchmarks.overhead.peers import peers
from benchmarks.overhead.rounds import run


def libcupti_path(device: str) -> str:
    """The library that our own session loads, so that the floor stands on the same."""
    if device == "sim":
        from cuptiprof.sim.sim_device import library_path

        return str(library_path())
    from cuptiprof.device.locate import find_cupti

    return find_cupti().path


def versions(device: str) -> dict[str, Any]:
    """What the numbers depend on, beside the machine."""
    from cuptiprof.device.devices import open_device

    out: dict[str, Any] = dict(open_device(device).metadata())
    for module in ("torch", "triton", "nvtx"):
        try:
            out[module] = getattr(__import__(module), "__version__", "")
        except ImportError:
            out[module] = None
    if device == "cuda":
        import torch

        if torch.cuda.is_available():
            out["gpu"] = torch.cuda.get_device_name(0)
    return out


def measure(device: str, rounds: int, phase_s: float, limit_s: float, only: list[str] | None = None) -> dict[str, Any]:
    """Everything; the dict that is written as JSON. `only`: workloads to run, by name."""
    began = time.monotonic()
    with ExitStack() as stack:
        library = native.build()
        elsewhere = None
        conditions: list[Condition] = []
        if device == "cuda":
            from benchmarks.overhead import workloads_cuda

            made, reasons = workloads_cuda.workloads(library)
            elsewhere = stack.enter_context(Elsewhere(library))
        else:
            from benchmarks.overhead import workloads_sim

            made, reasons = workloads_sim.workloads()
            conditions.append(missing("nothing", "baseline", "the simulated device is part of cuptiprof"))
        if only:
            made = [w for w in made if w.name in only]
        conditions += [imported(), *floors(library, libcupti_path(device)), *our_conditions(device), *peers(device)]
        cells = run(
            made, conditions, rounds, phase_s, began + limit_s, elsewhere, lambda s: print(f"# {s}", flush=True)
        )
        return {
            "benchmark": "overhead",
            "device": device,
            "simulated": device == "sim",
            "versions": versions(device),
            "rounds": rounds,
            "seconds": round(time.monotonic() - began, 1),
            "rows": table.rows(made, conditions, cells, reasons),
            "findings": table.findings(made, cells),
        }


def main() -> None:
    from cuptiprof.device.locate import driver_present

    parser = arguments(__doc__)
    parser.add_argument("--device", choices=("sim", "cuda"), help="default: cuda where there is a driver")
    parser.add_argument("--quick", action="store_true", help="3 short rounds")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--workloads", nargs="+", help="only these")
    parser.add_argument("--limit", type=float, help="seconds after which no round is begun")
    options = parser.parse_args()
    device = options.device or ("cuda" if driver_present() else "sim")
    rounds = options.rounds or (3 if options.quick else 12)
    limit = options.limit or (110 if options.quick else 900)
    data = measure(device, rounds, 0.03 if options.quick else 0.1, limit, options.workloads)
    print(table.text(data))
    if options.out is not None:
        finish(data, options.out)


if __name__ == "__main__":
    main()
