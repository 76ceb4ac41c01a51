"""Cost of a region's enter and exit, beside nvtx.annotate and torch.profiler.record_function.

Net of an empty ``with`` block's surroundings: the same loop with ``pass`` is subtracted. Interleaved rounds, ns per
``with`` statement, object creation included. Bars: not collecting <= 1/4 of nvtx.annotate; collecting <= 1/2 of nvtx.annotate
and <= 1/20 of record_function under torch.profiler.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks.common import arguments, finish, interleaved, spread

N = 20_000


def timed(body: Callable[[int], None], n: int) -> float:
    start = time.perf_counter_ns()
    body(n)
    return (time.perf_counter_ns() - start) / n


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()

    import nvtx
    import torch

    import cuptiprof

    region = cuptiprof.region

    def empty(n: int) -> None:
        for _ in range(n):
            pass

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
            # A quarter of a ring at a time, as the decoder keeps up with in a real program.
            total = 0.0
            for _ in range(N // 4000):
                total += timed(ours, 4000)
                time.sleep(0.002)
        assert prof.result().losses["region_overflow"] == 0
        return total / (N // 4000)

    def under_torch_profiler() -> float:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
            return timed(record_function, N // 10)

    cases = {
        "empty": lambda: timed(empty, N),
        "region_off": lambda: timed(ours, N),
        "region_collecting": collecting,
        "nvtx_annotate": lambda: timed(nvtx_annotate, N),
        "record_function_off": lambda: timed(record_function, N // 10),
        "record_function_on": under_torch_profiler,
    }
    samples = interleaved(cases, options.rounds)
    floor = spread(samples["empty"])["median"]
    net = {k: spread([v - floor for v in values]) for k, values in samples.items() if k != "empty"}
    median = {k: v["median"] for k, v in net.items()}
    finish(
        {
            "benchmark": "regions",
            "unit": "ns per with statement, net of an empty loop",
            "versions": {"nvtx": getattr(nvtx, "__version__", ""), "torch": torch.__version__},
            "net_ns": net,
            "ratios": {
                "off_to_nvtx (bar 0.25)": round(median["region_off"] / median["nvtx_annotate"], 3),
                "collecting_to_nvtx (bar 0.5)": round(median["region_collecting"] / median["nvtx_annotate"], 3),
                "collecting_to_record_function_on (bar 0.05)": round(
                    median["region_collecting"] / median["record_function_on"], 4
                ),
            },
        },
        options.out,
    )


if __name__ == "__main__":
    main()
