"""What a scope costs where it is opened and closed, by its source and level, beside the peers that mark ranges.

ns for one pair of entry and exit, without any launch in it; then ns of a launch inside of one, five and no scopes of the level
"launch", which is where those are looked at. Cases in turn. Bar: 50 ns more for a scope of the level "launch" than for the same NVTX
range while nobody listens. ``plain``: NVTX without any library that hears it, in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version

from benchmarks.common import arguments, finish, in_turn, least_ns, ratio, significant, summary

N = 4000
"""Pairs or launches of a case: their events fit into a thread's ring."""
_PLAIN = """
import nvtx
from benchmarks.common import least_ns
from benchmarks.scopes import N, pairs
print(least_ns(pairs(nvtx), N))
"""


def pairs(nvtx: object) -> Callable[[], None]:
    """N ranges of a domain, by the cheapest way that the package has."""
    domain = nvtx.get_domain("benchmark")  # type: ignore[attr-defined]
    said = domain.get_event_attributes(message="range")
    push, pop = domain.push_range, domain.pop_range

    def work() -> None:
        for _ in range(N):
            push(said)
            pop()

    return work


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=24)
    options = parser.parse_args()

    import cuptiprof

    cuptiprof.inject_nvtx()

    import nvtx
    import torch

    from cuptiprof.sim.sim_device import Op, SimDevice

    device = SimDevice()
    launches = device.prepare(device.ops(N, Op.KERNEL, name="kernel", duration_ns=1))
    domain = nvtx.get_domain("benchmark")
    said = domain.get_event_attributes(message="range")
    ranges = pairs(nvtx)
    ranges()  # NVTX looks for who hears it at its first call

    def annotations() -> None:
        for _ in range(N):
            with nvtx.annotate("range", domain="benchmark"):
                pass

    def regions() -> None:
        for _ in range(N):
            with cuptiprof.region("range"):
                pass

    def records() -> None:
        for _ in range(N // 10):
            with torch.profiler.record_function("range"):
                pass

    def loop() -> None:
        for _ in range(N):
            pass

    def within(work: Callable[[], object], level: str | None) -> Callable[[], float]:
        def measure() -> float:
            sources = {"nvtx": level} if level else None
            with cuptiprof.profile(device="sim", activities=["kernel"], sources=sources):
                return least_ns(work, N)

        return measure

    def launched_inside(scopes: int) -> Callable[[], float]:
        def measure() -> float:
            with cuptiprof.profile(device="sim", activities=["kernel"], sources={"nvtx": "launch"}):
                for _ in range(scopes):
                    domain.push_range(said)
                try:
                    return least_ns(launches, N)
                finally:
                    for _ in range(scopes):
                        domain.pop_range()

        return measure

    def kineto() -> float:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
            return least_ns(records, N // 10)

    def plain() -> float:
        env = {name: value for name, value in os.environ.items() if name != "NVTX_INJECTION64_PATH"}
        done = subprocess.run([sys.executable, "-c", _PLAIN], env=env, capture_output=True, text=True, check=True)
        return float(done.stdout)

    cases: dict[str, Callable[[], object]] = {
        "empty loop": lambda: least_ns(loop, N),
        "nvtx, plain": plain,
        "nvtx, nobody listens": lambda: least_ns(ranges, N),
        "nvtx, launch": within(ranges, "launch"),
        "nvtx, full": within(ranges, "full"),
        "nvtx.annotate, full": within(annotations, "full"),
        "region": within(regions, None),
        "torch record_function under Kineto": kineto,
        "launch, no scope": launched_inside(0),
        "launch in 1 scope": launched_inside(1),
        "launch in 5 scopes": launched_inside(5),
    }
    found = in_turn(cases, options.rounds)
    ns = {m.name: summary(m.samples) for m in found.measurements}

    def more(name: str, base: str) -> float:
        return significant(ns[name]["median"] - ns[base]["median"])

    finish(
        {
            "benchmark": "scopes",
            "unit": "ns per pair of entry and exit, or per launch",
            "versions": {"torch": torch.__version__, "nvtx": version("nvtx")},
            "ns": ns,
            "more_ns": {
                "nvtx at the level launch (bar 50)": more("nvtx, launch", "nvtx, nobody listens"),
                "nvtx at the level full": more("nvtx, full", "nvtx, nobody listens"),
                "nvtx that is heard, nobody listens": more("nvtx, nobody listens", "nvtx, plain"),
                "a launch in 1 scope (bar 50)": more("launch in 1 scope", "launch, no scope"),
                "a launch in 5 scopes": more("launch in 5 scopes", "launch, no scope"),
            },
            "ratios": {"full to region": ratio(found.verdict("nvtx, full", "region"))},
        },
        options.out,
    )


if __name__ == "__main__":
    main()
