"""The bound on what the recorder costs, with a clock and a cost that the test makes."""

from __future__ import annotations

import pytest

from cuptiprof.flight_recorder.cost_bound import CostBound

LOOK = 0.25


def simulate(bound: float, rate_open: list[float], rate_closed: float = 0.0) -> tuple[list[bool], list[float]]:
    """Looks with these costs (s a s) while open; whether it was open after each, and the cost so far."""
    guard = CostBound(bound, 100.0)
    now, spent, is_open = 100.0, 0.0, True
    opened, costs = [], []
    for rate in rate_open:
        now += LOOK
        spent += LOOK * (rate if is_open else rate_closed)
        is_open = guard.look(now, spent)
        opened.append(is_open)
        costs.append(spent)
    assert guard.pct == pytest.approx(100 * spent / (now - 100.0))
    return opened, costs


@pytest.mark.parametrize("rate", [0.02, 0.05, 0.3, 1.5, 8.0])
def test_the_cost_stays_below_the_bound(rate: float) -> None:
    opened, costs = simulate(0.01, [rate] * 40_000)
    for i, cost in enumerate(costs):
        # what is saved for a burst, a window, and the look that came too late
        assert cost <= 0.01 * (LOOK * (i + 1) + 10) + rate * LOOK + 1e-9
    assert costs[-1] == pytest.approx(0.01 * LOOK * len(costs), rel=0.05)  # and it is used
    windows = "".join("x" if one else "." for one in opened).strip("x.").split(".")
    lengths = [len(window) * LOOK for window in windows if window]
    assert min(lengths[1:] or [1.0]) >= 0.75


def test_what_is_cheap_is_never_paused() -> None:
    assert all(simulate(0.01, [0.009] * 4000)[0])
    # a burst of a second is paid for by what came before
    assert all(simulate(0.01, [0.001] * 100 + [0.08] * 4 + [0.001] * 100)[0])


def test_dear_even_without_collecting() -> None:
    opened, _ = simulate(0.01, [0.05] * 8000, rate_closed=0.02)
    assert not any(opened[400:])


def test_what_the_program_paused_is_no_window() -> None:
    """Nothing was collected: the window's cost per second is that of the time in which something was."""
    guard = CostBound(0.01, 0.0)
    spent = 0.0
    for i in range(1, 9):
        spent += 0.02 * LOOK
        guard.look(i * LOOK, spent)
    for i in range(9, 400):
        assert guard.look(i * LOOK, spent, collecting=False)
    assert guard._rate == pytest.approx(0.02)


def test_a_clock_that_stands_still() -> None:
    guard = CostBound(0.01, 5.0)
    assert guard.look(5.0, 0.0) and guard.look(5.0, 0.05)
    assert not guard.look(5.0, 1.0) and not guard.look(4.0, 1.0)
    assert guard.look(5.0 + 200.0, 1.0)
