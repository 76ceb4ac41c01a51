"""What differs between processes: verdicts from the medians of several runs of each side, and over the many points of a sweep.

Where buffers lie, clocks and temperature differ from process to process and hardly within one, so the samples of one process say
nothing of it, however many there are. The median of a process is then one observation.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from cuptiprof.stats.ranks import RankTest
from cuptiprof.stats.statistics import Ratio
from cuptiprof.stats.verdict import (
    ALPHA,
    THRESHOLD,
    ClockTick,
    Kind,
    Verdict,
    check_limits,
    checked_times,
    decide,
    hidden_by,
)

MIN_FREEDOM = 2
"""Degrees of freedom of the variance between processes: three processes on one side and one on the other, or two on each."""


def judge_runs(
    base: npt.ArrayLike,
    new: npt.ArrayLike,
    *,
    threshold: float = THRESHOLD,
    alpha: float = ALPHA,
    tick: ClockTick = None,
) -> Verdict:
    """Compare two sides by the medians of their processes.

    The difference of the mean logarithms with Student's t interval and test. The variance between processes, which has that within them
    in it, is taken to be the same on both sides, so one side may have a single process: Snedecor, Cochran, Statistical Methods, 6.9.

    Args:
        base, new: shapes (m,) and (n,), the median of each process, in the same unit.
        threshold, alpha, tick: as of ``judge``.

    Raises:
        ValueError: as ``judge``.
    """
    check_limits(threshold, alpha)
    a, b = np.log(checked_times(base, "base")), np.log(checked_times(new, "new"))
    freedom = a.size + b.size - 2
    shift = float(b.mean() - a.mean())
    effect = float(np.sign(b[:, None] - a[None, :]).mean())
    if freedom < MIN_FREEDOM:
        nothing = RankTest(0.0, 1.0, effect, 1.0, False)
        return decide(Ratio(math.exp(shift), 0.0, math.inf, 0.0), nothing, threshold, alpha, 1, (0.0, 0.0))
    squares = float(((a - a.mean()) ** 2).sum() + ((b - b.mean()) ** 2).sum())
    error = math.sqrt(squares / freedom * (1 / a.size + 1 / b.size))
    ticks = tick if isinstance(tick, tuple) else (tick, tick)
    hidden = math.fsum(hidden_by(np.exp(x), t if t is not None else 0.0) for x, t in zip((a, b), ticks, strict=True))
    reach = student_quantile(1 - alpha / 2, freedom) * error + hidden
    p = student_p(shift / error, freedom) if error > 0 else float(shift == 0)
    ratio = Ratio(math.exp(shift), math.exp(shift - reach), math.exp(shift + reach), 1 - alpha)
    return decide(ratio, RankTest(shift, p, effect, 1.0, False), threshold, alpha, a.size + b.size, ticks)


def judge_sweep(points: Sequence[Callable[[float], Verdict]], alpha: float = ALPHA) -> list[Verdict]:
    """The verdicts on the points of a sweep, of which one or more claims wrongly in `alpha` of the sweeps at most.

    Step-down: Holm, A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of Statistics 6 (1979): a claim must
    stand at alpha over the number of points that are not claimed yet. Intervals stay those of `alpha`.

    Args:
        points: the verdict on each at a given alpha.
    """
    verdicts = [point(alpha) for point in points]
    claimed: set[int] = set()
    while True:
        level = alpha / max(len(points) - len(claimed), 1)
        more = {i for i, v in enumerate(verdicts) if i not in claimed and v.differs and points[i](level).differs}
        if not more:
            break
        claimed |= more
    return [
        replace(v, kind=Kind.UNSURE, reason=f"{v.reason}: not certain among {len(points)} points")
        if v.differs and i not in claimed
        else v
        for i, v in enumerate(verdicts)
    ]


def student_p(t: float, freedom: int) -> float:
    """P(abs(T) >= abs(t)) of Student's T: I_x(freedom / 2, 1 / 2), x = freedom / (freedom + t^2).

    Source: Abramowitz, Stegun, Handbook of Mathematical Functions, 26.7.1 and the continued fraction 26.5.8.
    """
    x = freedom / (freedom + t * t)
    return _beta(freedom / 2, 0.5, x) if x < 1 else 1.0


@functools.lru_cache(maxsize=1024)  # the same for all points of a sweep
def student_quantile(probability: float, freedom: int) -> float:
    """t with P(T <= t) = `probability`, above 1/2, by halving."""
    low, high = 0.0, 1.0
    while student_p(high, freedom) / 2 > 1 - probability:
        high *= 2
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if student_p(middle, freedom) / 2 > 1 - probability else (low, middle)
    return high


def _beta(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function."""
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(max(x, 1e-300)) + b * math.log1p(-x)
    )
    # Lentz's way through the fraction 1 / (1 + d1 / (1 + d2 / ...)).
    value, c, d = 1.0, 1.0, 0.0
    for i in range(300):
        m = i // 2
        if i == 0:
            term = 1.0
        elif i % 2 == 0:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / (1 + term * d)
        c = 1 + term / c
        value *= c * d
        if abs(1 - c * d) < 1e-14:
            break
    return front / a * (value - 1)
