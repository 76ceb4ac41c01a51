"""Verdicts on cycles: time x SM clock, so that a clock that differs between two series is no difference of theirs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cuptiprof.bench.results.measurement import Measurement

SAID = "judged in cycles: time x the SM clock of each sample"


def in_cycles(m: Measurement) -> Measurement:
    """`m` with cycles for ns in what is judged: samples and tick.

    Raises:
        BenchError: the SM clock is not known.
    """
    return replace(m, samples=m.cycles(), tick=m.tick * float(np.nanmedian(m.sm_hz)) / 1e9)
