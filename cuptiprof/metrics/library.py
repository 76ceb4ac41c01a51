"""NVIDIA's planner, found and opened: what a chip can really count, and in how many passes. Needs no GPU."""

from __future__ import annotations

from collections.abc import Sequence

from cuptiprof import _core
from cuptiprof.device.plan_cache import CachedPlanner
from cuptiprof.device.planning import planning_library
from cuptiprof.metrics.target import check_chip


def open_planner(
    chip: str, library: _core.CuptiLibrary | None = None, *, sampling: bool = False
) -> _core.MetricPlanner:
    """A planner for ``chip``; for PM sampling instead of ranges if ``sampling``.

    Args:
        library: from :func:`cuptiprof.device.planning.planning_library`; None: the one that a session would use.

    Raises:
        DeviceError: no libcupti, or one that cannot plan.
        MetricError: a chip that the library does not know, with the nearest names.
    """
    library = library or planning_library()
    return CachedPlanner(library, check_chip(chip, _core.metric_chips(library)), sampling)


def count_passes(planner: _core.MetricPlanner, inputs: Sequence[str]) -> int:
    """Passes for perfworks names collected together: the sum over the configurations that they need."""
    return sum(group.passes for group in planner.plan(list(inputs)))
