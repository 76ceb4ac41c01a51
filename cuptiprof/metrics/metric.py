"""What the catalogue gives: a metric with its expression on one chip, and a selection of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cuptiprof.metrics.expression import parse
from cuptiprof.metrics.perfworks import Kind

Exists: TypeAlias = Callable[[str], bool]
"""Whether the planner can count a perfworks name on the chip."""

Describe: TypeAlias = Callable[[str], Mapping[str, Any] | None]
"""``MetricPlanner.properties``: "description", "unit" of a perfworks name; None if there is none."""


@dataclass(frozen=True)
class Metric:
    """A metric as one chip counts it.

    Attributes:
        name: as it was asked for.
        description: one line.
        unit: "byte/s", "%", "instruction/cycle", "ratio" (0..1), "level 0-10", ...; empty if unknown.
        expression: over perfworks names, with what this chip needs put in.
        status: where the expression comes from: "official-direct", "official-formula", "official-rescaled",
            "corrected", "derived", "legacy" for nvprof's metrics, "official", "corrected" for its events,
            "perfworks" for a perfworks name itself.
        kind: what a value is: "count", "ratio", "percent" (0..100), "throughput" (byte/s), "rate", "utilization" (0..10).
        category: "memory", "cache", ..., "event", "roofline", "ncu", "perfworks".
        notes: what one should know before trusting it; may be empty.
    """

    name: str
    description: str
    unit: str
    expression: str
    status: str
    kind: Kind
    category: str = ""
    notes: str = ""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The perfworks names that the expression needs, each once."""
        return parse(self.expression).inputs

    def to_dict(self) -> dict[str, Any]:
        """What a result's metadata say of the metric: name, unit, kind, description, expression, status, notes, inputs."""
        return {
            "name": self.name,
            "unit": self.unit,
            "kind": self.kind,
            "description": self.description,
            "expression": self.expression,
            "status": self.status,
            "notes": self.notes,
            "inputs": list(self.inputs),
        }

    def value(self, inputs: Mapping[str, npt.ArrayLike]) -> npt.NDArray[np.float64]:
        """The metric from the values of its inputs, element by element; NaN where something is divided by zero.

        Args:
            inputs: perfworks name -> values in perfworks' own units, float64 of shapes that broadcast.

        Raises:
            MetricError: an input is missing.
        """
        return parse(self.expression).evaluate(inputs)


@dataclass(frozen=True)
class Selection:
    """Metrics that a preset, a section or a set stands for.

    Attributes:
        metrics: in the order of the preset, each name once.
        dropped: name -> why it is not counted.
    """

    metrics: tuple[Metric, ...]
    dropped: Mapping[str, str] = field(default_factory=dict)

    @property
    def inputs(self) -> tuple[str, ...]:
        """All perfworks names that are needed, each once: what the planner is asked to add in one call."""
        return tuple(dict.fromkeys(name for metric in self.metrics for name in metric.inputs))
