"""Samples of what the threads of the host ran, taken by another tool beside a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class HostSamples:
    """Samples of the host in the order of the file.

    Attributes:
        time: ns, CLOCK_MONOTONIC where they shall be put beside a run.
        process: process ID; -1: the file has only threads. thread: system thread ID.
        stack: index into `stacks`; -1: the sample has none.
        stacks: each a tuple of indices into `functions`, the innermost first.
        functions: names of functions, and in brackets where a frame has none, of the object it is in.
        skipped: lines that are none of a sample.
    """

    time: Int64
    process: Int64
    thread: Int64
    stack: Int64
    stacks: tuple[tuple[int, ...], ...]
    functions: tuple[str, ...]
    skipped: int
