"""The chip that metrics are resolved for, and what is known of it: the catalogue's data, or NVIDIA's library itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from cuptiprof.data.chips import CHIPS, chips_called
from cuptiprof.errors import MetricError
from cuptiprof.metrics import name_tables
from cuptiprof.metrics.metric import Describe, Exists
from cuptiprof.metrics.name_tables import Entry
from cuptiprof.text.nearest import nearest


@dataclass(frozen=True)
class Target:
    """A chip by its exact name ("GH100") and, if a planner is at hand, ways to ask it.

    Attributes:
        chip: as libcupti names it.
        exists, describe: answers of the planner; None: the catalogue's own data must do.
        chips_with: which chips have a perfworks name, for error messages.
    """

    chip: str
    exists: Exists | None = None
    describe: Describe | None = None
    chips_with: Callable[[str], Iterable[str]] | None = None

    @property
    def like(self) -> str:
        """The chip whose ncu section lists hold for this one; the chip itself if the catalogue does not know it."""
        known = CHIPS.get(self.chip)
        return known.like if known else self.chip

    def can_count(self, names: Iterable[str]) -> bool:
        """Whether the planner has all of ``names``; True if there is no planner to ask."""
        return self.exists is None or all(self.exists(name) for name in names)

    def expressions(self, entry: Entry) -> list[tuple[str, tuple[str, ...]]]:
        """(expression, reasons for its changes) that may hold on this chip, best first.

        With a planner the others follow too: a newer library may have renamed something, or brought it back.
        """
        listed = _replaced(entry, lambda chips: self.chip in chips)
        if self.exists is None:
            return [listed]
        found = dict([listed, (entry.expression, ())])
        for override in name_tables.overrides():
            if override.applies(entry.name, entry.expression):
                found.setdefault(entry.expression.replace(override.replace, override.replacement), (override.reason,))
        return list(found.items())


def _replaced(entry: Entry, on: Callable[[frozenset[str]], bool]) -> tuple[str, tuple[str, ...]]:
    expression, reasons = entry.expression, []
    for override in name_tables.overrides():
        if on(override.chips) and override.applies(entry.name, expression):
            expression = expression.replace(override.replace, override.replacement)
            reasons.append(override.reason)
    return expression, tuple(reasons)


def make_target(
    chip: str,
    exists: Exists | None = None,
    describe: Describe | None = None,
    chips_with: Callable[[str], Iterable[str]] | None = None,
) -> Target:
    """A target; a chip that the catalogue does not know needs a planner.

    Raises:
        MetricError: unknown chip, with the nearest names.
    """
    if exists is None and describe is not None:
        exists = _exists(describe)
    return Target(check_chip(chip, () if exists is None else (chip,)), exists, describe, chips_with)


def _exists(describe: Describe) -> Exists:
    return lambda name: describe(name) is not None


def check_chip(chip: str, more: Iterable[str] = ()) -> str:
    """The chip that ``chip`` means: its name, or in whatever case its name or that of a product with it ("H100", "RTX 4090").

    Raises:
        MetricError: neither the catalogue nor ``more`` has it, or several it could be; the hint names them, or the nearest.
    """
    known = [*CHIPS, *(c for c in more if c not in CHIPS)]
    if chip in known:
        return chip
    called = chips_called(chip[:100])
    if len(called) == 1:
        return called[0]
    near = called or nearest(chip[:100].strip().upper(), known)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise MetricError(f"unknown chip {chip[:100]!r}", hint=f"{hint}known: {', '.join(known)}")
