"""Cost of a region's enter and exit, beside nvtx.annotate and torch.profiler.record_function.

Net of an empty ``with`` block's surroundings: the same loop with ``pass``, timed beside it, is subtracted. Cases in turn,
ns per ``with`` statement, object creation included. Bars: not collecting <= 1/4 of nvtx.annotate; collecting <= 1/2 of
nvtx.annotate and <= 1/20 of record_function under torch.profiler.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks.common import arguments, finish, in_turn, ratio, summary

N = 4000
"""So few that a loop fits into a slice of a busy machine's scheduler, and into a quarter of a ring of events."""
FLOORS = 5


def timed(body: Callable[[int], None], n: int) -> float:
    start = time.perf_counter_ns()
    body(n)
    return (time.perf_counter_ns() - start) / n


def empty(n: int) -> None:
    for _ in range(n):
        pass


def net(body: Callable[[int], None], n: int) -> float:
    """ns of one turn of the loop, less those of an empty one; of that the least, as what else runs here can only add to it."""
    return timed(body, n) - min(timed(empty, n // FLOORS) for _ in range(FLOORS))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args()

    import nvtx
    import torch

    import cuptiprof

    region = cuptiprof.region

    def ours(n: int) -> None:
        for _ in range(n):
            with region("fwd"):
                pass

    def nvtx_annotate(n: int) -> None:
        for _ in range(n):
            with nvtx.annotate("fwd"):
                pass

    def record_function(n: int) -> None:
        for _ in range(n):
            with torch.profiler.record_function("fwd"):
                pass

    prof = cuptiprof.profile(device="sim", activities=["kernel"], budget="256 MB")

    def collecting() -> float:
        with prof:
            ours(1000)
            ns = net(ours, N)
        assert prof.result().losses["region_overflow"] == 0
        return ns

    def under_torch_profiler() -> float:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
            return net(record_function, N // 10)

    cases = {
        "nvtx_annotate": lambda: net(nvtx_annotate, N),
        "region_off": lambda: net(ours, N),
        "region_collecting": collecting,
        "record_function_off": lambda: net(record_function, N // 10),
        "record_function_on": under_torch_profiler,
    }
    found = in_turn(cases, options.rounds)
    finish(
        {
            "benchmark": "regions",
            "unit": "ns per with statement, net of an empty loop",
            "versions": {"nvtx": getattr(nvtx, "__version__", ""), "torch": torch.__version__},
            "net_ns": {m.name: summary(m.samples) for m in found.measurements},
            "ratios": {
                "off_to_nvtx (bar 0.25)": ratio(found.verdict("region_off", "nvtx_annotate")),
                "collecting_to_nvtx (bar 0.5)": ratio(found.verdict("region_collecting", "nvtx_annotate")),
                "collecting_to_record_function_on (bar 0.05)": ratio(
                    found.verdict("region_collecting", "record_function_on")
                ),
            },
        },
        options.out,
    )


if __name__ == "__main__":
    main()
