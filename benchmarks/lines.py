"""What the Python line, or the whole stack, adds to a launch, beside torch.profiler's ``with_stack``.

ns per launch on the stand-in, launched from C under a Python stack of so many frames, so that only the collector's part differs
between the cases; ns per operator for torch.profiler on the CPU, which follows Python's calls instead. Cases in turn. Bars:
the innermost line <= 100 ns, a stack of 60 frames <= 300 ns more than no source.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from benchmarks.common import arguments, finish, in_turn, least_ns, ratio, significant, summary

N = 4000
"""Launches of a case: they fit into a ring of events, and into a slice of a busy machine's scheduler."""
FRAMES = 60

_T = TypeVar("_T")


def below(frames: int, work: Callable[[], _T]) -> _T:
    """Runs the work under so many frames of Python."""
    return below(frames - 1, work) if frames else work()


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()

    import torch

    import cuptiprof
    from cuptiprof.sim.sim_device import Op, SimDevice

    device = SimDevice()
    launches = device.prepare(device.ops(N, Op.KERNEL, name="kernel", duration_ns=1))

    def case(sources: str | None, frames: int) -> Callable[[], float]:
        def measure() -> float:
            with cuptiprof.profile(device="sim", activities=["kernel"], sources=sources) as prof:
                ns = below(frames, lambda: least_ns(launches, N))
            assert prof.result().losses["region_overflow"] == 0
            return ns

        return measure

    x = torch.zeros(1)

    def operators() -> None:
        for _ in range(N // 10):
            x.add_(1)

    def kineto(with_stack: bool) -> Callable[[], float]:
        def measure() -> float:
            cpu = torch.profiler.ProfilerActivity.CPU
            with torch.profiler.profile(activities=[cpu], with_stack=with_stack):
                return below(FRAMES, lambda: least_ns(operators, N // 10))

        return measure

    cases: dict[str, Callable[[], object]] = {
        "none": case(None, FRAMES),
        "lines": case("lines", FRAMES),
        "stacks_4": case("stacks", 4),
        f"stacks_{FRAMES}": case("stacks", FRAMES),
        "kineto": kineto(False),
        "kineto_with_stack": kineto(True),
    }
    found = in_turn(cases, options.rounds)
    medians = {m.name: summary(m.samples) for m in found.measurements}

    def more(name: str, base: str) -> float:
        return significant(medians[name]["median"] - medians[base]["median"])

    finish(
        {
            "benchmark": "lines",
            "unit": "ns per launch (kineto: per operator)",
            "versions": {"torch": torch.__version__},
            "ns": medians,
            "more_ns": {
                "lines (bar 100)": more("lines", "none"),
                "stacks of 4 frames": more("stacks_4", "none"),
                f"stacks of {FRAMES} frames (bar 300)": more(f"stacks_{FRAMES}", "none"),
                "kineto with_stack, per operator": more("kineto_with_stack", "kineto"),
            },
            "ratios": {
                "lines_to_none": ratio(found.verdict("lines", "none")),
                f"stacks_{FRAMES}_to_none": ratio(found.verdict(f"stacks_{FRAMES}", "none")),
            },
        },
        options.out,
    )


if __name__ == "__main__":
    main()
