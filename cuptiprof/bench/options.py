"""How to measure: the keywords of ``bench``, ``compare``, ``run_benchmarks``, ``@benchmark`` and the fixture, written once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from cuptiprof.text.nearest import did_you_mean

if TYPE_CHECKING:
    from typing import Literal

    from cuptiprof.bench.sampling import Strategy
    from cuptiprof.data.clock_state import ClockTarget
    from cuptiprof.stats.stopping import Rule


class CommonOptions(TypedDict, total=False):
    """What is the same at all points of a sweep.

    Keys:
        strategy: "kernel" (default where there is a GPU: its own times, from activity records), "event" (CUDA events around the call), "graph"
            (replays of the call captured into a CUDA graph), "cpu" (host time to launch), "wall" (until the GPU has finished),
            "manual" (what the function returns, ns); or an object of ``cuptiprof.bench`` (``Kernel(span=True)``).
        metrics: counters to read after timing, over one call (nvprof's names, perfworks names, presets); default: none.
        l2: "warm" (default): calls follow each other; "cold": before each sample as much is written as drives its data out of
            the L2; "rotate": each call gets another copy of the arguments' arrays, so many that none is in the L2 when its turn
            comes.
        stop: when to stop; default: :func:`cuptiprof.bench.default_rule`.
        max_seconds: stop then at the latest, with what there is; default: 3.
        warmup_seconds: warm up for so long at most after the first call; default: 1.
        lock_clocks: lock the SM clock meanwhile: "base" (what the board keeps up under any load), "max", or MHz. Takes root.
        energy: also measure the energy of a call, about a second of calls more.
        memory: also measure what a call allocates at its highest, beyond what was there before; one call more. PyTorch only, whose
            peak statistics start anew.
        over_ranks: each process of torch.distributed's group measures this at the same place, and each sample is the longest of
            all ranks.
        stream: that the function works in, for "event" and "graph" where it is not PyTorch's or CuPy's current one: an object of
            Numba's, CuPy's, PyTorch's or cuda.core's, or the driver's handle.
    """

    strategy: str | Strategy
    metrics: str | Iterable[str]
    l2: Literal["warm", "cold", "rotate"]
    stop: Rule | None
    max_seconds: float
    warmup_seconds: float
    lock_clocks: ClockTarget | None
    energy: bool
    memory: bool
    over_ranks: bool
    stream: object


class Options(CommonOptions, total=False):
    """How to measure a function: ``bench(f, l2="cold", max_seconds=10)``. A dict of them serves several: ``bench(f, **options)``.

    Keys:
        flops, bytes: operations and DRAM bytes of one call by your count, or "measured": by the GPU's counters.
        dtype: element type of the function's operations ("bfloat16", "fp8", ``torch.float16``, ...): which compute roof it lies under.
    """

    flops: float | str | None
    bytes: float | str | None
    dtype: object


class SweepOptions(CommonOptions, total=False):
    """The same for all points of a benchmark.

    Keys:
        flops, bytes, dtype: as of :class:`Options`, or a function of those parameters that it names.
    """

    flops: float | str | Callable[..., Any] | None
    bytes: float | str | Callable[..., Any] | None
    dtype: object


def check_names(function: str, options: Mapping[str, object]) -> None:
    """Raises TypeError for a keyword that is no option, as a call of a function without it does."""
    for name in options:
        if name not in Options.__optional_keys__:
            guess = did_you_mean(name, Options.__optional_keys__)
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{guess}")
