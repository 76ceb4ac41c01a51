"""Ten million launches in one session, and what became of each: python -m benchmarks.soak [--device sim|cuda]

Launches made, launches seen, records received and rows kept must add up: the only loss allowed is what the byte budget
evicts. Also resident memory along the way, which must not grow once the budget is full. Exit 1 where a launch is unaccounted for.
On a GPU an empty kernel is launched from C. The stand-in finishes work at once, without a queue that makes a launch
wait; there the program waits when 10,000 records are on their way.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.common import arguments, finish
from benchmarks.overhead import native
from benchmarks.overhead.rounds import resident_bytes

LAUNCHES = 10_000_000
BUDGET = 256_000_000
EXPLAINED = ("budget_evicted",)
ON_THEIR_WAY = 10_000
REPORTS = 10


def launcher(device: str) -> tuple[Callable[[int], None], Callable[[], None]]:
    """(launch so many, wait for the device).

    Raises:
        OSError: the native part cannot be built, or there is no driver.
    """
    if device == "cuda":
        library = native.build()
        if isinstance(library, str):
            raise OSError(library)
        kernel = native.EmptyKernel(library)
        return kernel.launch, kernel.synchronize
    from cuptiprof.sim.sim_device import Op, SimDevice

    sim = SimDevice()
    one = sim.ops(1, Op.KERNEL, name="_Z5emptyv", duration_ns=10)
    prepared: dict[int, Callable[[], None]] = {}

    def launch(count: int) -> None:
        if count not in prepared:
            prepared[count] = sim.prepare(one.repeat(count))
        prepared[count]()

    return launch, sim.synchronize


def run(device: str, launches: int, seconds: float, batch: int = 1000) -> dict[str, Any]:
    """At most `launches`, at most `seconds`, in one session."""
    import cuptiprof

    launch, synchronize = launcher(device)
    launch(batch)  # what the first launches map is not part of the growth
    synchronize()
    before = resident_bytes()
    made = 0
    memory: list[int] = []
    prof = cuptiprof.profile(device=device, activities=["kernel"], budget=BUDGET)
    began = time.monotonic()
    waited = 0.0
    with prof:
        session = prof._session
        while made < launches and time.monotonic() - began < seconds:
            count = min(batch, launches - made)
            launch(count)
            made += count
            if device == "sim":
                start = time.monotonic()
                while made - session.counts()["kernels_received"] > ON_THEIR_WAY:
                    time.sleep(0.0002)
                waited += time.monotonic() - start
            if made * REPORTS // launches > len(memory):
                memory.append(resident_bytes() - before)
        synchronize()
        launched = time.monotonic() - began
    stopped = time.monotonic() - began
    result = prof.result()
    seen = result.metadata["launches"]
    losses = {name: count for name, count in dict(result.losses).items() if count}
    unexplained = unaccounted(made, seen["launches"], seen["kernels_received"], len(result.kernels), losses)
    return {
        "launches_made": made,
        "launches_seen": seen["launches"],
        "records_received": seen["kernels_received"],
        "rows_kept": len(result.kernels),
        "losses": losses,
        "unexplained": unexplained,
        "complete": made == launches,
        "seconds": round(launched, 2),
        "of_which_waited_for_the_decoder": round(waited, 2),
        "stop_seconds": round(stopped - launched, 3),
        "ns_per_launch": round(launched * 1e9 / max(made, 1), 1),
        "resident_growth_bytes": memory,
        "resident_to_budget": round(max(memory, default=0) / BUDGET, 3),
    }


def unaccounted(made: int, seen: int, received: int, kept: int, losses: dict[str, int]) -> int:
    """Launches that nothing explains: not seen, seen without a record, received and neither kept nor evicted; other losses."""
    evicted = sum(losses.get(name, 0) for name in EXPLAINED)
    other = sum(count for name, count in losses.items() if name not in EXPLAINED)
    return abs(made - seen) + abs(seen - received) + abs(received - kept - evicted) + other


def main() -> int:
    from cuptiprof.device.locate import driver_present

    parser = arguments(__doc__)
    parser.add_argument("--device", choices=("sim", "cuda"), help="default: cuda where there is a driver")
    parser.add_argument("--launches", type=int, default=LAUNCHES)
    parser.add_argument("--seconds", type=float, default=600, help="launch no longer than this")
    options = parser.parse_args()
    device = options.device or ("cuda" if driver_present() else "sim")
    data = {"benchmark": "soak", "device": device, "simulated": device == "sim", "budget": BUDGET}
    data |= run(device, options.launches, options.seconds)
    finish(data, options.out)
    return 0 if data["unexplained"] == 0 and data["complete"] else 1


if __name__ == "__main__":
    sys.exit(main())
