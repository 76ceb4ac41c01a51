"""Which training steps to collect, in torch.profiler's terms."""

from __future__ import annotations

import enum
from collections.abc import Callable


class Action(enum.Enum):
    """What the session does during one step."""

    NONE = 0
    WARMUP = 1  # collects, and throws away
    RECORD = 2
    RECORD_AND_SAVE = 3  # the last of a cycle: a result is made of it


Schedule = Callable[[int], Action]
"""Number of a step, from 0 -> what the session does during it."""


def schedule(
    wait: int, warmup: int, active: int, repeat: int = 0, *, skip_first: int = 0, skip_first_wait: int = 0
) -> Schedule:
    """A schedule like ``torch.profiler.schedule``.

    The first `skip_first` steps do nothing. Then every cycle has `wait` steps without collection, `warmup` steps whose
    data is thrown away and `active` steps that are kept; after the last active one ``on_ready`` is called.
    `repeat` cycles, or without end if 0. ``skip_first_wait=1`` leaves out the wait of the first cycle.

    Raises:
        ValueError: a negative number, or ``active`` < 1.
    """
    numbers = {"wait": wait, "warmup": warmup, "active": active, "repeat": repeat, "skip_first": skip_first}
    for name, value in numbers.items():
        if value < (1 if name == "active" else 0):
            raise ValueError(f"schedule: {name}={value} is too small")

    def at(step: int) -> Action:
        if step < skip_first:
            return Action.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        cycle = wait + warmup + active
        if repeat and step // cycle >= repeat:
            return Action.NONE
        position = step % cycle
        if position < wait:
            return Action.NONE
        if position < wait + warmup:
            return Action.WARMUP
        return Action.RECORD_AND_SAVE if position == cycle - 1 else Action.RECORD

    return at
