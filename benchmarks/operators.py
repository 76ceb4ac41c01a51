"""What an operator of PyTorch costs while it is observed, beside torch.profiler's CPU side, on CPU tensors.

ns for one call of ``aten::neg`` on four numbers, without any launch in it; cases in turn, in one run. ``nothing observed``: our callback
is there and returns at once (a paused session), which is the least that torch asks for a global callback. Bars: the level "launch" costs
100 ns more than nothing at all, the level "full" half of what torch.profiler costs more.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from benchmarks.common import arguments, finish, in_turn, least_ns, ratio, significant, summary

N = 2000
"""Calls of a case: their events fit into a thread's ring."""


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=12)
    options = parser.parse_args()

    import torch

    import cuptiprof
    from cuptiprof.device.devices import SimulatedDevice

    class WithoutKernels(SimulatedDevice):
        """PyTorch's operators launch nothing on it: what is measured is the host."""

        def started(self) -> None:
            pass

        def stopping(self) -> None:
            pass

    torch.set_num_threads(1)
    x = torch.ones(4)
    device = WithoutKernels()

    def calls() -> None:
        for _ in range(N):
            x.neg()

    def session(sources: Any, pause: bool = False) -> Callable[[], float]:
        def measure() -> float:
            with cuptiprof.profile(device=device, activities=["kernel"], sources=sources) as prof:
                if pause:
                    prof.pause()
                found = least_ns(calls, N)
                if pause:
                    prof.resume()
            result = prof.result()
            assert result.losses["region_overflow"] == 0, "the ring was full"
            assert pause or sources != "operators" or len(result.operators) > N
            return found

        return measure

    def kineto(**more: bool) -> Callable[[], float]:
        def measure() -> float:
            with _profiler(**more):
                return least_ns(calls, N)

        return measure

    def _profiler(**more: bool) -> AbstractContextManager[Any]:
        return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], acc_events=True, **more)

    shapes = {"operators": {"shapes": True}}
    cases: dict[str, Callable[[], object]] = {
        "base": lambda: least_ns(calls, N),
        "nothing observed": session({"operators": "launch"}, pause=True),
        "launch": session({"operators": "launch"}),
        "full": session("operators"),
        "full, shapes": session(shapes),
        "full, stacks": session(["operators", "stacks"]),
        "torch.profiler": kineto(),
        "torch.profiler, shapes": kineto(record_shapes=True),
        "torch.profiler, stacks": kineto(with_stack=True),
    }
    found = in_turn(cases, options.rounds, seconds=80)
    ns = {m.name: summary(m.samples) for m in found.measurements}

    def more(name: str, base: str = "base") -> float:
        return significant(ns[name]["median"] - ns[base]["median"])

    pairs = [
        ("full", "torch.profiler"),
        ("full, shapes", "torch.profiler, shapes"),
        ("full, stacks", "torch.profiler, stacks"),
    ]
    finish(
        {
            "benchmark": "operators",
            "unit": "ns per operator",
            "versions": {"torch": torch.__version__},
            "ns": ns,
            "more_ns": {
                "a callback of torch that does nothing": more("nothing observed"),
                "launch (bar 100)": more("launch"),
                "launch, beyond a callback that does nothing": more("launch", "nothing observed"),
                "full": more("full"),
                "torch.profiler": more("torch.profiler"),
            },
            "cost_by_torch_profilers": {ours: significant(more(ours) / more(theirs)) for ours, theirs in pairs},
            "verdicts": {f"{ours} by {theirs}": ratio(found.verdict(ours, theirs)) for ours, theirs in pairs},
        },
        options.out,
    )


if __name__ == "__main__":
    main()
