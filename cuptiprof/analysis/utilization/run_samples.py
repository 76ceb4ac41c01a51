"""Which samples of the host are of a run: those of its process, in its time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cuptiprof.data.codes import renumbered
from cuptiprof.data.host_samples import HostSamples
from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError
from cuptiprof.text.units import format_time

Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

NO_STACK = "(no stack)"
_FRAMES = 64
"""of a stack's text, the innermost: what a reader of one sample looks at"""


@dataclass(frozen=True)
class StackTexts:
    """Samples as what is drawn of them, an entry a sample.

    Attributes:
        time: ns on the run clock. thread: system thread ID.
        stack: index into `functions` and `stacks`.
        functions: the innermost function. stacks: all of them in one line, the innermost first.
    """

    time: Int64
    thread: Int64
    stack: Int64
    functions: list[str]
    stacks: list[str]


def of_process(result: Result, samples: HostSamples) -> Mask:
    """Samples of the run's process; where the file does not tell processes apart, all.

    Raises:
        ResultError: there is none.
    """
    pid = result.metadata.get("pid")
    mine: Mask = (samples.process == pid) | (samples.process == -1) if isinstance(pid, int) else samples.process >= -1
    if not mine.any():
        raise ResultError(
            f"none of {len(samples.time):,} samples is of the run's process {pid}",
            hint="inside a container a process has another number than outside: run perf where the program runs",
        )
    return mine


def within(mine: Mask, samples: HostSamples, first: int, last: int, what: str = "the first and the last work") -> Mask:
    """Those of `mine` in [first, last), ns of the run clock, which is CLOCK_MONOTONIC; so must be that of the samples.

    Raises:
        ResultError: there is none, which another clock explains.
    """
    inside: Mask = mine & (samples.time >= first) & (samples.time < last)
    if not inside.any():
        raise ResultError(
            f"none of {len(samples.time):,} samples lies between {what} of the run "
            f"({_times(first, last)}; samples of its process: {_times(*_ends(samples.time[mine]))})",
            hint="perf record -k CLOCK_MONOTONIC, on the same machine, while the run was made",
        )
    return inside


def drawn_samples(result: Result, first: int, last: int) -> StackTexts | None:
    """The samples that were put beside the run, in [first, last], by time; None: none were.

    Raises:
        ResultError: none is of its process, or lies there.
    """
    samples = result.host_samples
    if samples is None:
        return None
    rows = np.flatnonzero(within(of_process(result, samples), samples, first, last + 1, "the beginning and the end"))
    rows = rows[np.argsort(samples.time[rows], kind="stable")]
    used, stack = renumbered(samples.stack[rows])
    frames = [[samples.functions[f] for f in samples.stacks[s]] if s >= 0 else [NO_STACK] for s in used.tolist()]
    return StackTexts(
        samples.time[rows],
        samples.thread[rows],
        np.asarray(stack, np.int64),
        [one[0] for one in frames],
        [" < ".join([*one[:_FRAMES], *(["..."] if len(one) > _FRAMES else [])]) for one in frames],
    )


def _ends(time: Int64) -> tuple[int, int]:
    return int(time.min()), int(time.max())


def _times(first: int, last: int) -> str:
    return f"{first / 1e9:.6f} s, {format_time(last - first)} long"
